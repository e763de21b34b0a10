import type { RequestWatcher, UnreadRequest, WatchedRequest } from '../http/watched-request.ts';
import type { Log } from '../log.ts';

/**
 * Logs one line for each request, at level info. It has no URL, which may hold what nobody should read, and of the key
 * only the id.
 */
export class RequestLog implements RequestWatcher {
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  ended(request: WatchedRequest): void {
    const { id: requestId, endpoint, method, status, durationMs, keyId, operation, errors, address } = request;
    this.#log.info(
      {
        requestId,
        endpoint,
        method,
        status,
        durationMs: Math.round(durationMs * 1000) / 1000,
        keyId,
        ...(operation && { operation: { type: typeOf(operation), name: operation.name } }),
        ...(errors > 0 && { errors }),
        address,
        ...(request.isCutOff && { cutOff: true }),
      },
      'request',
    );
  }

  unread({ id: requestId, status, address }: UnreadRequest): void {
    this.#log.info({ requestId, endpoint: 'other', status, address }, 'request');
  }
}

/** The type of an operation, as GraphQL names it. */
export function typeOf({ isMutation }: { isMutation: boolean }): 'mutation' | 'query' {
  return isMutation ? 'mutation' : 'query';
}
