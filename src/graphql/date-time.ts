import {
  defaultFieldResolver,
  type DocumentNode,
  getNamedType,
  type GraphQLField,
  type GraphQLObjectType,
  GraphQLScalarType,
  type GraphQLSchema,
  Kind,
} from 'graphql';
import { clampTime, missingDay, readDate } from '../keys/basics/index.ts';
import { badInput } from './resolve.ts';

/**
 * The scalar of times: RFC 3339, section 5.6, and nothing else. Its values stay text on their way in, for the rules
 * that read them; on its way out, a time is milliseconds since 1970 or a `Date`.
 */
export const DateTime = new GraphQLScalarType({
  name: 'DateTime',
  description: 'An RFC 3339 date and time. Answers have it in UTC.',
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc3339#section-5.6',
  parseValue: (value) => {
    // The command line also takes a space between date and time, and around them.
    if (typeof value !== 'string' || /\s/.test(value) || readDate(value) === undefined)
      throw badInput(
        [
          'A DateTime must be an RFC 3339 date and time, such as "2030-12-31T23:59:59Z".',
          typeof value === 'string' ? missingDay(value) : undefined,
        ]
          .filter(Boolean)
          .join(' '),
      );
    return value;
  },
  serialize: (value) => {
    const text = new Date(value as number).toISOString();
    // RFC 3339 has no years beyond 9999.
    if (!/^\d/.test(text)) throw new RangeError('A DateTime is in no year from 0 to 9999.');
    return text;
  },
});

/**
 * Makes every time of the built-in part one that `DateTime` can tell: they come from rows, which may be damaged. What a
 * host's field answers is the host's, and an error if it is none.
 * @param own the built-in part
 */
export function clampBuiltInDates(schema: GraphQLSchema, own: readonly DocumentNode[]): void {
  for (const definition of own.flatMap(({ definitions }) => definitions)) {
    if (definition.kind !== Kind.OBJECT_TYPE_DEFINITION) continue;
    const fields = (schema.getType(definition.name.value) as GraphQLObjectType).getFields();
    for (const { name } of definition.fields ?? []) {
      const field = fields[name.value]!;
      if (getNamedType(field.type).name === DateTime.name)
        mapAnswer(field, (value) => (typeof value === 'number' ? clampTime(value) : value));
    }
  }
}

/** Has a field answer what becomes of what it is resolved to. */
export function mapAnswer(field: GraphQLField<unknown, never>, made: (value: unknown) => unknown): void {
  const resolve = field.resolve ?? defaultFieldResolver;
  field.resolve = (...args) => {
    const value: unknown = resolve(...args);
    return value instanceof Promise ? value.then(made) : made(value);
  };
}
