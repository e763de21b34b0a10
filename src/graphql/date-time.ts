import { GraphQLScalarType } from 'graphql';
import { missingDay, readDate } from '../keys/time.ts';
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
