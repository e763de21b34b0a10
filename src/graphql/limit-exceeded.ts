import { GraphQLError } from 'graphql';

/** The error for a document that exceeds a limit. */
export function limitExceeded(what: string, limit: number): GraphQLError {
  return new GraphQLError(`The document has more than ${limit} ${what}, the maximum allowed.`, {
    extensions: { code: 'LIMIT_EXCEEDED' },
  });
}
