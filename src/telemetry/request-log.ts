import type { RequestWatcher, UnreadRequest, WatchedRequest } from '../http/watched-request.ts';
import type { FinishedLines, Log, OpenLog } from '../log.ts';
import { RequestLines, typeOf } from './request-lines.ts';

/**
 * Logs one line for each request, at level info. It has no URL, which may hold what nobody should read, and of the key
 * only the id.
 */
export function requestLog(log: Log & Partial<Pick<OpenLog, 'finished'>>): RequestWatcher {
  return log.finished ? new ComposedLog(log.finished) : new FieldLog(log);
}

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
