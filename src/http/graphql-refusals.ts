import type { ResponseType } from './media-type.ts';
import { errorReply, graphqlReply, type Reply } from './replies.ts';
import { RequestRefused } from './request-refused.ts';

/** The reply to a request that was refused, in the media type that its client wants. */
export function refusedReply(type: ResponseType, { status, code, message, headers }: RequestRefused): Reply {
  const { text } = errorReply(status, code, message);
  return graphqlReply(status, type, text, headers);
}

/** The reply to a request by another method. */
export function methodNotAllowed(): Reply {
  const message = 'GraphQL is served by POST, and queries by GET as well.';
  return errorReply(405, 'METHOD_NOT_ALLOWED', message, { Allow: 'GET, HEAD, POST' });
}

/** Of a mutation that stands in the URL of a GET request. */
export function mutationByUrl(): RequestRefused {
  return new RequestRefused(405, 'METHOD_NOT_ALLOWED', 'Mutations are served by POST only.', { Allow: 'POST' });
}
