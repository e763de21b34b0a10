import { request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import type { Notice } from '../keys/notices/notice.ts';
import { debugTimed } from '../keys/steps.ts';
import { printable } from '../keys/text.ts';
import { type SigningKey, signatureHeaders } from './signature.ts';

/** Where notices go, and what signs them. */
export interface Webhook {
  readonly url: string;
  readonly keys: readonly SigningKey[];
}

/** What a webhook answered. */
export type Answer =
  | { readonly is: 'taken'; readonly status: number }
  /** It wants no notices any more. */
  | { readonly is: 'gone'; readonly status: number; readonly failure: string }
  | {
      readonly is: 'failed';
      /** Undefined where there was no answer. */
      readonly status: number | undefined;
      readonly failure: string;
      readonly retryAfterMs: number | undefined;
    };

/** How a notice is sent. */
export interface PostOptions {
  /** Milliseconds since 1970. */
  now: number;
  /** The version of this program. */
  version: string;
  /** Ends the attempt. */
  signal: AbortSignal;
  timeoutMs?: number;
}

/** How long an attempt may take, as Standard Webhooks proposes. */
const TIMEOUT_MS = 15_000;
const MAX_HEAD_BYTES = 16_384;

/**
 * Sends a notice once. Redirects are not followed, and of the answer nothing is read but its head.
 * @returns what became of it; it never throws
 */
export function postNotice(
  notice: Pick<Notice, 'id' | 'body'>,
  webhook: Webhook,
  options: PostOptions,
): Promise<Answer> {
  return debugTimed(
    'a notice was sent',
    () => post(notice, webhook, options),
    (answer) => ({
      webhook: URL.parse(webhook.url)?.origin,
      notice: notice.id,
      is: answer?.is,
      status: answer?.status,
    }),
  );
}

function post(
  notice: Pick<Notice, 'id' | 'body'>,
  { url, keys }: Webhook,
  { now, version, signal, timeoutMs = TIMEOUT_MS }: PostOptions,
): Promise<Answer> {
  const body = Buffer.from(notice.body);
  const headers = {
    'content-type': 'application/json',
    'content-length': body.length,
    'user-agent': `svc-api/${version}`,
    ...signatureHeaders(notice, keys, now),
  };
  const ends = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  return new Promise((resolve) => {
    const send = url.startsWith('https:') ? requestTls : requestPlain;
    const options = { method: 'POST', headers, agent: false, signal: ends, maxHeaderSize: MAX_HEAD_BYTES };
    const request = send(url, options, (response) => {
      resolve(answerOf(response.statusCode ?? 0, response.headers['retry-after'], now));
      // Whatever else it says is of no use.
      request.destroy();
    });
    request.on('error', (error) => resolve(failed(reasonOf(error, ends, timeoutMs))));
    // After 101 (Switching Protocols) there is neither an answer nor an error.
    request.on('close', () => resolve(failed('the connection was closed without an answer')));
    request.end(body);
  });
}

function answerOf(status: number, retryAfter: string | undefined, now: number): Answer {
  if (status >= 200 && status < 300) return { is: 'taken', status };
  if (status === 410) return { is: 'gone', status, failure: 'the answer was 410 (Gone)' };
  const isRedirect = status >= 300 && status < 400;
  const failure = `the answer was ${status}${isRedirect ? ', a redirect, which is not followed' : ''}`;
  const retryAfterMs = retryAfter === undefined ? undefined : readRetryAfter(retryAfter, now);
  return { is: 'failed', status, failure, retryAfterMs };
}

/** The delay that a header asks for (RFC 9110, section 10.2.3), in milliseconds; undefined if it cannot be read. */
function readRetryAfter(text: string, now: number): number | undefined {
  if (/^\d{1,9}$/.test(text.trim())) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

function failed(failure: string): Answer {
  return { is: 'failed', status: undefined, failure, retryAfterMs: undefined };
}

/** Why there was no answer. */
function reasonOf(error: NodeJS.ErrnoException, ends: AbortSignal, timeoutMs: number): string {
  if ((ends.reason as Error | undefined)?.name === 'TimeoutError')
    return `no answer within ${timeoutMs / 1000} seconds`;
  if (ends.aborted) return 'the attempt was ended';
  // Texts of TLS errors name the host alone; what a server sends is in none of them.
  return printable(error.code ?? error.message, 200);
}
