import { RequestDetails, type RequestWatcher, type UnreadRequest, type WatchedRequest } from '../http/index.ts';
import { debug } from '../keys/basics/index.ts';
import type { FinishedLines, Log, OpenLog } from '../log.ts';
import { RequestLines, typeOf } from './request-lines.ts';

/**
 * Logs one line for each request, at level info. It has no URL, which may hold what nobody should read, and of the key
 * only the id.
 */
export function requestLog(log: Log & Partial<Pick<OpenLog, 'finished'>>): RequestWatcher {
  return log.finished ? new ComposedLog(log.finished) : new FieldLog(log);
}

/** Logs at level debug what was decided about each request, by what, and how long that took. */
export const requestDebugLog: RequestWatcher = {
  began(request) {
    request.details = new RequestDetails();
  },

  ended(request) {
    debug('a request ended', () => {
      const { id: requestId, endpoint, method, status, address } = request;
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

/** The codes of requests whose key, or the lack of one, is why they are refused. */
const REFUSALS: ReadonlySet<string> = new Set(['INVALID_REQUEST', 'UNAUTHENTICATED', 'FORBIDDEN', 'RATE_LIMITED']);

/** What was decided about the key of a request; none, while the store did not answer. */
function decisionOf({ code, prefix }: RequestDetails): 'refused' | 'allowed' | 'open' | undefined {
  if (code !== undefined && REFUSALS.has(code)) return 'refused';
  if (prefix !== undefined) return 'allowed';
  return code === 'SERVICE_UNAVAILABLE' ? undefined : 'open';
}

const rounded = (ms: number): number => Math.round(ms * 1000) / 1000;

/** By the fields of a log, whatever that makes of them. */
class FieldLog implements RequestWatcher {
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
        durationMs: rounded(durationMs),
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

/** By lines that are the same, and cost a tenth. */
class ComposedLog implements RequestWatcher {
  readonly #finished: FinishedLines;
  readonly #lines: RequestLines;

  constructor(finished: FinishedLines) {
    this.#finished = finished;
    this.#lines = new RequestLines(finished.origin);
  }

  ended(request: WatchedRequest): void {
    this.#finished.add(this.#lines.of(request));
  }

  unread(request: UnreadRequest): void {
    this.#finished.add(this.#lines.ofUnread(request));
  }
}
