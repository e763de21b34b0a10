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
 * The scalar of times: RFC 3339, section 5.6, and nothing else. Input stays text for the rules to read; output is
 * milliseconds since 1970 or a `Date`.
 */
export const DateTime = new GraphQLScalarType({
  name: 'DateTime',
  description: 'A date and time in the format of RFC 3339. Answers are in UTC.',
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc3339#section-5.6',
  parseValue: (value) => {
    // The command line also accepts a space between date and time, and around them.
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
    if (!/^\d/.test(text)) throw new RangeError('The year of a DateTime must be from 0 to 9999.');
    return text;
  },
});

/**
 * Clamps every time of the built-in part to values that `DateTime` can represent, since rows can be damaged. A host's
 * own fields are left alone, and fail for other values.
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

/** Converts the answer of a field after it is resolved. */
export function mapAnswer(field: GraphQLField<unknown, never>, made: (value: unknown) => unknown): void {
  const resolve = field.resolve ?? defaultFieldResolver;
  field.resolve = (...args) => {
    const value: unknown = resolve(...args);
    return value instanceof Promise ? value.then(made) : made(value);
  };
}
