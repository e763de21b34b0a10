import { RequestDetails, type RequestWatcher } from '../../http/index.ts';
import { debug } from '../../keys/basics/index.ts';
import type { Log } from '../../log.ts';

/** The type of an operation, as GraphQL names it. */
export function typeOf({ isMutation }: { isMutation: boolean }): 'mutation' | 'query' {
  return isMutation ? 'mutation' : 'query';
}

/**
 * Logs a line for each request, at level info, without the URL, which can contain secrets, and with only the id of the
 * key.
 */
export function requestLog(log: Log): RequestWatcher {
  return {
    ended(request) {
      const { id: requestId, endpoint, method, status, keyId, upstream, operation, errors, address } = request;
      log.info(
        {
          requestId,
          endpoint,
          method,
          status,
          durationMs: rounded(request.durationMs),
          keyId,
          ...(upstream !== undefined && { upstream }),
          ...(operation && { operation: { type: typeOf(operation), name: operation.name } }),
          ...(errors > 0 && { errors }),
          address,
          ...(request.isCutOff && { cutOff: true }),
        },
        'request',
      );
    },

    unread({ id: requestId, status, address }) {
      log.info({ requestId, endpoint: 'other', status, address }, 'request');
    },
  };
}

/** Logs the decision about each request at level debug, with its reason and duration. */
export const requestDebugLog: RequestWatcher = {
  began(request) {
    request.details = new RequestDetails();
  },

  ended(request) {
    debug('a request ended', () => {
      const { id: requestId, endpoint, method, status, upstream, address } = request;
      const details = request.details!;
      details.ended('answer');
      const { prefix, keyFrom, route, permissions, code, reason, stages } = details;
      return {
        requestId,
        endpoint,
        method,
        status,
        decision: decisionOf(details),
        code,
        prefix,
        keyFrom,
        route,
        upstream,
        ...(permissions.size > 0 && { permissions: [...permissions] }),
        reason,
        stages,
        durationMs: rounded(request.durationMs),
        address,
      };
    });
  },

  unread({ id: requestId, status, address }) {
    debug('a request could not be read', () => ({ requestId, status, address }));
  },
};

const REFUSALS: ReadonlySet<string> = new Set(
  'INVALID_REQUEST UNAUTHENTICATED FORBIDDEN RATE_LIMITED BUDGET_SPENT'.split(' '),
);

/** The decision about the key of a request; undefined while the store does not answer. */
function decisionOf({ code, prefix }: RequestDetails): 'refused' | 'allowed' | 'open' | undefined {
  if (code !== undefined && REFUSALS.has(code)) return 'refused';
  if (prefix !== undefined) return 'allowed';
  return code === 'SERVICE_UNAVAILABLE' ? undefined : 'open';
}

const rounded = (ms: number): number => Math.round(ms * 1000) / 1000;
