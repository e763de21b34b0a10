import { createHmac } from 'node:crypto';
import { request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import {
  debugTimed,
  KeysError,
  printable,
  proxyNote,
  readRetryAfter,
  readSecretFile,
} from '../../keys/basics/index.ts';
import { TIMEOUT_MS } from './destination.ts';
import { packageVersion } from '../../version.ts';
import type { Notice, NoticeAnswer, NoticeChannel, NoticeSettings } from './notice.ts';

/** A key that signs, as bytes. */
type SigningKey = Buffer;

const SECRET = /^(?:whsec_)?([0-9A-Za-z+/]{32,88}={0,2})$/;
/** Length of secrets by Standard Webhooks, in bytes. */
const [MIN_BYTES, MAX_BYTES] = [24, 64];

/** The key in a secret in the form of Standard Webhooks: `whsec_` and 24 to 64 bytes in base64; undefined otherwise. */
export function readSigningKey(text: string): SigningKey | undefined {
  const base64 = SECRET.exec(text)?.[1];
  if (base64 === undefined) return undefined;
  const key = Buffer.from(base64, 'base64');
  const isWhole = key.toString('base64').replace(/=+$/, '') === base64.replace(/=+$/, '');
  return isWhole && key.length >= MIN_BYTES && key.length <= MAX_BYTES ? key : undefined;
}

/**
 * Headers that let a receiver verify a message (Standard Webhooks 1.0). It is signed with each key, so that keys can be
 * replaced.
 * @param at milliseconds since 1970
 */
function signatureHeaders(
  { id, body }: { id: string; body: string },
  keys: readonly SigningKey[],
  at: number,
): Record<string, string> {
  const timestamp = String(Math.floor(at / 1000));
  const signatures = keys.map(
    (key) => `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`,
  );
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}

/** Target of notices, with the keys that sign them. */
interface Webhook {
  readonly url: string;
  readonly keys: readonly SigningKey[];
}

/** Options for sending a notice. */
interface PostOptions {
  /** Milliseconds since 1970. */
  now: number;
  version: string;
  signal: AbortSignal;
  timeoutMs?: number;
}

const MAX_HEAD_BYTES = 16_384;

/**
 * Sends a notice once. Redirects are not followed, and of the answer nothing is read but its head.
 * @returns what became of it; it never throws
 */
export function postNotice(
  notice: Pick<Notice, 'id' | 'body'>,
  webhook: Webhook,
  options: PostOptions,
): Promise<NoticeAnswer> {
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
): Promise<NoticeAnswer> {
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
    // The global agent uses a proxy with NODE_USE_ENV_PROXY.
    const options = { method: 'POST', headers, signal: ends, maxHeaderSize: MAX_HEAD_BYTES };
    const request = send(url, options, (response) => {
      resolve(answerOf(response.statusCode ?? 0, response.headers['retry-after'], now));
      // The rest of the answer is not needed.
      request.destroy();
    });
    request.on('error', (error) => {
      const note = ends.aborted && signal.aborted ? '' : proxyNote(url);
      resolve(failed(`${reasonOf(error, ends, timeoutMs)}${note && `.${note}`}`));
    });
    // After 101 (Switching Protocols) there is neither an answer nor an error.
    request.on('close', () => resolve(failed('the connection was closed without an answer')));
    request.end(body);
  });
}

function answerOf(status: number, retryAfter: string | undefined, now: number): NoticeAnswer {
  if (status >= 200 && status < 300) return { is: 'taken', status };
  if (status === 410) return { is: 'gone', status, failure: 'the answer was 410 (Gone)' };
  const isRedirect = status >= 300 && status < 400;
  const failure = `the answer was ${status}${isRedirect ? ', a redirect, which is not followed' : ''}`;
  const retryAfterMs = retryAfter === undefined ? undefined : readRetryAfter(retryAfter, now);
  return { is: 'failed', status, failure, retryAfterMs };
}

function failed(failure: string): NoticeAnswer {
  return { is: 'failed', status: undefined, failure, retryAfterMs: undefined };
}

function reasonOf(error: NodeJS.ErrnoException, ends: AbortSignal, timeoutMs: number): string {
  if ((ends.reason as Error | undefined)?.name === 'TimeoutError')
    return `no answer within ${timeoutMs / 1000} seconds`;
  if (ends.aborted) return 'the attempt was ended';
  // Texts of TLS errors contain only the host, and nothing that a server sent.
  return printable(error.code ?? error.message, 200);
}

/** Signs notices as Standard Webhooks has it, and posts them to a URL. */
export const webhook: NoticeChannel = {
  open(settings, env) {
    const { url } = settings;
    const keys = readSigningKeys(settings, env);
    const version = packageVersion();
    // Receivers compare the time with their clocks; that of the store can be ahead of all.
    return (notice, options) => postNotice(notice, { url, keys }, { ...options, now: Date.now(), version });
  },
};

const VARIABLE = 'SVC_API_NOTICES_SECRET';
const MAX_SECRETS = 5;
const FORM =
  'Write each as whsec_ and 24 to 64 bytes in base64, with white space between several. ' +
  'A new one: echo "whsec_$(openssl rand -base64 32)"';

/**
 * Reads the secrets that sign notices: from the file that the configuration names, otherwise from
 * SVC_API_NOTICES_SECRET. Several, between white space, all sign, so that a receiver can take another one.
 * @throws KeysError CONFIG_UNAVAILABLE, CONFIG_INSECURE if other users can read them, CONFIG_INVALID
 */
export function readSigningKeys(
  { secretFile }: Pick<NoticeSettings, 'secretFile'>,
  env: NodeJS.ProcessEnv,
): SigningKey[] {
  const text = secretFile === undefined ? env[VARIABLE] : readSecretFile(secretFile, SECRET_FILE).text;
  if (!text?.trim()) {
    if (secretFile !== undefined) throw invalid(`${nameOf(secretFile)} is empty`);
    throw new KeysError(
      'CONFIG_UNAVAILABLE',
      `The signing secret for notices is missing. Set ${VARIABLE}, or "secretFile" under "notices".`,
    );
  }
  const from = secretFile === undefined ? VARIABLE : nameOf(secretFile);
  const texts = text.trim().split(/\s+/);
  if (texts.length > MAX_SECRETS) throw invalid(`${from} has ${texts.length} secrets; at most ${MAX_SECRETS} sign`);
  return texts.map((each, index) => {
    const key = readSigningKey(each);
    if (!key) throw invalid(`${from}: secret ${index + 1} of ${texts.length} is not in the form of Standard Webhooks`);
    return key;
  });
}

const SECRET_FILE = {
  what: 'The file of the secrets that sign notices',
  remedy: 'Correct "secretFile" under "notices".',
};

function nameOf(path: string): string {
  return `${SECRET_FILE.what}, ${printable(path, 200)},`;
}

function invalid(reason: string): KeysError {
  return new KeysError('CONFIG_INVALID', `${reason}. ${FORM}`);
}
