import { assertValid, type Issue } from '../keys/errors.ts';

/**
 * Refuses null for the fields of an input, but for those where it means something: whoever writes it may expect that it
 * takes a value away, and would not see that nothing happened.
 * @throws ValidationError INPUT_INVALID
 */
export function refuseNulls(input: object, meaningful: readonly string[] = []): void {
  const nulls = Object.entries(input).filter(([field, value]) => value === null && !meaningful.includes(field));
  assertValid(
    nulls.map(([field]): Issue => {
      const message = `"${field}" is null, which means nothing here. Leave it out, or give it a value.`;
      return { code: 'INPUT_INVALID', message, field };
    }),
  );
}
