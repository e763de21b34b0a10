import { GraphQLError } from 'graphql';

/** The error for a document that has more of something than is allowed. */
export function limitExceeded(what: string, limit: number): GraphQLError {
  return new GraphQLError(`The document has more than ${limit} ${what}, which is the most that is allowed.`, {
    extensions: { code: 'LIMIT_EXCEEDED' },
  });
}
