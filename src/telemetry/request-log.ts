import {
  type NamedOperation,
  RequestDetails,
  type RequestWatcher,
  type UnreadRequest,
  type WatchedRequest,
} from '../http/index.ts';
import { redactSecrets } from '../keys/secret/index.ts';
import { debug } from '../keys/basics/index.ts';
import type { FinishedLines, Log, OpenLog } from '../log.ts';

/** Texts that stand in JSON as they are, such as addresses and our own ids. None holds a secret: those have a `_`. */
const PLAIN = /^[\dA-Za-z.:-]*$/;
const END = ',"msg":"request"}\n';
/** The parts of a millisecond, as they stand behind its number. */
const THOUSANDTHS: readonly string[] = Array.from({ length: 1000 }, (_, part) =>
  part === 0 ? '' : `.${String(part).padStart(3, '0')}`.replace(/0+$/, ''),
);

/**
 * Composes the lines of the request log by hand, in ASCII. A part that is the same for many requests is composed once
 * for those that come one after another: each piece of a line costs as much as what it says.
 */
class RequestLines {
  readonly #origin: string;
  #at = Number.NaN;
  #start = '';
  #answer: Pick<WatchedRequest, 'endpoint' | 'method' | 'status'> | undefined;
  #answerText = '';
  #operation: NamedOperation | undefined;
  #operationText = '';
  #address: string | undefined;
  #end = END;

  /** @param origin what each line has after its time */
  constructor(origin: string) {
    this.#origin = origin;
  }

  of(request: WatchedRequest): string {
    const { keyId, operation, errors } = request;
    // An id has only characters that stand in JSON as they are, and holds no secret: see `requestIdOf`.
    let line = this.#begin() + request.id + this.#answerOf(request) + milliseconds(request.durationMs);
    if (keyId !== undefined) line += `,"keyId":${quoted(keyId)}`;
    if (request.upstream !== undefined) line += `,"upstream":"${request.upstream}"`;
    if (operation) line += this.#operationOf(operation);
    if (errors > 0) line += `,"errors":${errors}`;
    if (!request.isCutOff) return line + this.#endWith(request.address);
    return `${line + this.#endWith(request.address).slice(0, -END.length)},"cutOff":true${END}`;
  }

  ofUnread({ id, status, address }: UnreadRequest): string {
    return `${this.#begin()}${id}","endpoint":"other","status":${status}${this.#endWith(address)}`;
  }

  /** What lines of this millisecond have before the id. */
  #begin(): string {
    const now = Date.now();
    if (now !== this.#at) {
      this.#at = now;
      this.#start = flat(`{"level":30,"time":${now},${this.#origin},"requestId":"`);
    }
    return this.#start;
  }

  #answerOf({ endpoint, method, status }: WatchedRequest): string {
    const same = this.#answer;
    if (same && same.status === status && same.method === method && same.endpoint === endpoint) return this.#answerText;
    const asked = method === undefined ? '' : `,"method":"${method}"`;
    const answered = status === undefined ? '' : `,"status":${status}`;
    this.#answer = { endpoint, method, status };
    this.#answerText = flat(`","endpoint":"${endpoint}"${asked}${answered},"durationMs":`);
    return this.#answerText;
  }

  #operationOf(operation: NamedOperation): string {
    const { isMutation, name } = operation;
    if (this.#operation?.isMutation === isMutation && this.#operation.name === name) return this.#operationText;
    const called = name === undefined ? '' : `,"name":${quoted(name)}`;
    this.#operation = operation;
    return (this.#operationText = flat(`,"operation":{"type":"${typeOf(operation)}"${called}}`));
  }

  #endWith(address: string | undefined): string {
    if (address !== this.#address) {
      this.#address = address;
      this.#end = flat((address === undefined ? '' : `,"address":${quoted(address)}`) + END);
    }
    return this.#end;
  }
}

/** The type of an operation, as GraphQL names it. */
export function typeOf({ isMutation }: { isMutation: boolean }): 'mutation' | 'query' {
  return isMutation ? 'mutation' : 'query';
}

/** A duration, in thousandths of a millisecond: whole numbers become texts faster than others. */
function milliseconds(duration: number): string {
  const thousandths = Math.round(duration * 1000);
  const whole = Math.floor(thousandths / 1000);
  return whole + THOUSANDTHS[thousandths - whole * 1000]!;
}

/**
 * A text in ASCII in one piece: V8 keeps one that was put together as a tree of its parts, and would walk through all
 * of them for each line.
 */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}

/** A text as JSON in ASCII, without secrets. */
function quoted(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`;
  return JSON.stringify(redactSecrets(text)).replaceAll(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

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
    const {
      id: requestId,
      endpoint,
      method,
      status,
      durationMs,
      keyId,
      upstream,
      operation,
      errors,
      address,
    } = request;
    this.#log.info(
      {
        requestId,
        endpoint,
        method,
        status,
        durationMs: rounded(durationMs),
        keyId,
        ...(upstream !== undefined && { upstream }),
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
