import { GraphQLError } from 'graphql';

/** The error for a request that costs more than is allowed, before it runs. */
export function costExceeded(cost: number, limit: number): GraphQLError {
  return new GraphQLError(
    `The request costs ${Math.ceil(cost)}; at most ${limit} is allowed. Ask for smaller pages or fewer fields.`,
    { extensions: { code: 'COST_EXCEEDED', cost: Math.ceil(cost), limit } },
  );
}

/** The error for a request that turns out to be larger than its cost told. */
export function answerTooLarge(what: string, limit: number): GraphQLError {
  return new GraphQLError(
    `The answer has more than ${limit} ${what}, the most that is allowed. Ask for smaller pages or fewer fields.`,
    // What is beyond the limit is not counted.
    { extensions: { code: 'COST_EXCEEDED', cost: limit + 1, limit } },
  );
}

/** The error for a request that takes longer than is allowed. */
export function timeExceeded(limitMs: number): GraphQLError {
  return new GraphQLError(
    `The request took longer than ${limitMs / 1000} seconds and was abandoned. Changes may have been made.`,
    { extensions: { code: 'TIME_EXCEEDED', limitMs } },
  );
}

/** Why the work for a client ends that has closed its connection. Nobody reads it. */
export function clientGone(): GraphQLError {
  return new GraphQLError('The client has closed the connection.', { extensions: { code: 'BAD_REQUEST' } });
}
