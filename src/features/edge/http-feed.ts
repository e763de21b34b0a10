import { randomUUID, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { hostname } from 'node:os';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { createZstdDecompress } from 'node:zlib';
import { isKeysError, KeysError, printable, proxyNote } from '../../keys/basics/index.ts';
import { STORE_LEASE_MS } from '../../keys/repository/index.ts';
import type { LeaseGrant, LeaseRequest } from '../../limits/index.ts';
import {
  type ActivityReport,
  FeedGone,
  type FeedOptions,
  type FeedSource,
  LEAVE_MS,
  REST,
  type Watching,
} from './feed-source.ts';
import { FeedToken } from './feed-token.ts';

/** The origin, with the credentials of the edge. */
export interface HttpFeedOptions extends FeedOptions {
  /** Without a final slash. */
  readonly origin: string;
  /** Paths of PEM files: certificates of authorities that are trusted, and a client certificate with its key. */
  readonly ca?: string | undefined;
  readonly clientCert?: string | undefined;
  readonly clientKey?: string | undefined;
}

/** Maximum time a poll is held, as a part of its lease, so that the next one is there in time. */
const HOLD_PART = 1 / 2;
/** Extra time to wait for an answer at first, as a part of the lease. */
const PATIENCE_PART = 1 / 8;
/** Number of late answers to allow for within the rest of a lease, which starts when the origin answers. */
const LATE_ANSWERS = 3;
const MAX_PATIENCE_MS = 10_000;
/** Time-out of other requests, and of silence during a snapshot, in milliseconds. */
const ANSWER_MS = 10_000;
const SILENCE_MS = 30_000;
/** The pauses after failures: the first retry is immediate. */
const PAUSE_MS = 50;
const MAX_PAUSE_MS = 1000;
const MAX_CHANGES_BYTES = 256 * 1024 * 1024;
const MAX_ANSWER_BYTES = 1024 * 1024;

interface SentRequest {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
  /** A kept connection for requests of its kind. */
  readonly agent: HttpAgent;
  readonly signal?: AbortSignal;
}

/** The feed of an origin over HTTP, with one connection for changes and another for reports. */
export class HttpFeed implements FeedSource {
  readonly origin: string;
  readonly #options: HttpFeedOptions;
  readonly #id = randomUUID();
  readonly #request: typeof httpRequest;
  readonly #token: FeedToken;
  #changes: HttpAgent;
  #reports: HttpAgent;

  /** @throws KeysError CONFIG_UNAVAILABLE, CONFIG_INSECURE, CONFIG_INVALID of its files */
  constructor(options: HttpFeedOptions) {
    this.origin = options.origin;
    this.#options = options;
    this.#request = options.origin.startsWith('https:') ? httpsRequest : httpRequest;
    this.#token = new FeedToken(options.token, options.log);
    this.#changes = this.#newAgent();
    this.#reports = this.#newAgent();
    checkCertificates(this.#certificates());
  }

  async *snapshot(signal: AbortSignal): AsyncIterable<Buffer> {
    const answer = await this.#ask({ path: '/feed/snapshot', agent: this.#changes, signal }, SILENCE_MS);
    try {
      for await (const piece of bodyOf(answer)) yield piece as Buffer;
    } catch (error) {
      throw this.#unreachable(error);
    }
  }

  async follow(
    first: string,
    take: (lines: Buffer, askedAt: number) => Promise<string>,
    { signal, failed, resting }: Watching,
  ): Promise<never> {
    const { leaseMs, name = hostname() } = this.#options;
    const givenMs = Math.min(leaseMs, STORE_LEASE_MS);
    const leastMs = givenMs * PATIENCE_PART;
    let [cursor, patienceMs, failures, isRoused] = [first, leastMs, 0, false];
    for (;;) {
      const rest = failures > 0 || isRoused ? undefined : resting();
      // After a failure, an immediate answer shows soonest whether the new connection works; after a rest, it is
      // needed.
      const usualMs = Math.max(0, Math.min(givenMs * HOLD_PART, givenMs - LATE_ANSWERS * patienceMs));
      const holdMs = rest ? REST.askedMs : failures > 0 || isRoused ? 0 : usualMs;
      const waitMs = holdMs + (rest || isRoused ? Math.max(patienceMs, REST.patienceMs) : patienceMs);
      const query = new URLSearchParams({
        after: cursor,
        edge: this.#id,
        name,
        lease: `${leaseMs}`,
        [rest ? 'rest' : 'hold']: `${Math.floor(holdMs)}`,
      });
      const askedAt = performance.now();
      let lines: Buffer;
      try {
        const ended = rest ? AbortSignal.any([signal, rest]) : signal;
        lines = await this.#within(waitMs, ended, async (limited) => {
          const asked = { path: `/feed?${query.toString()}`, agent: this.#changes, signal: limited };
          return readWhole(await this.#ask(asked), MAX_CHANGES_BYTES);
        });
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof FeedGone) throw error;
        this.#changes.destroy();
        this.#changes = this.#newAgent();
        isRoused = rest !== undefined && (rest.aborted || performance.now() - askedAt > REST.leastMs);
        if (isRoused) continue;
        failed(error);
        failures += 1;
        const isSilent = isKeysError(error) && error.code === 'SERVER_UNREACHABLE';
        if (isSilent && failures > 1) patienceMs = Math.min(2 * patienceMs, MAX_PATIENCE_MS);
        await delay(isSilent ? pauseAfter(failures) : MAX_PAUSE_MS * jitter(), undefined, { signal, ref: false });
        continue;
      }
      // The answer takes longer over a slow connection.
      if (!rest) patienceMs = Math.max(leastMs, 2 * (performance.now() - askedAt - holdMs));
      cursor = await take(lines, askedAt);
      [failures, isRoused] = [0, rest?.aborted === true];
    }
  }

  async reportActivity(report: ActivityReport): Promise<void> {
    await this.#post('/feed/activity', report);
  }

  async lease(requests: readonly LeaseRequest[]): Promise<(LeaseGrant | null)[]> {
    const grants: unknown = JSON.parse((await this.#post('/feed/leases', requests)).toString());
    if (Array.isArray(grants) && grants.length === requests.length) return grants as (LeaseGrant | null)[];
    throw this.#incompatible('answered with leases that were not requested');
  }

  async leave(): Promise<void> {
    const path = `/feed?${new URLSearchParams({ edge: this.#id }).toString()}`;
    await this.#within(LEAVE_MS, undefined, async (signal) =>
      readWhole(await this.#ask({ method: 'DELETE', path, agent: this.#reports, signal }), MAX_ANSWER_BYTES),
    );
  }

  close(): void {
    this.#changes.destroy();
    this.#reports.destroy();
  }

  async #post(path: string, body: unknown): Promise<Buffer> {
    const send = () =>
      this.#within(ANSWER_MS, undefined, async (signal) =>
        readWhole(await this.#ask({ method: 'POST', path, body, agent: this.#reports, signal }), MAX_ANSWER_BYTES),
      );
    try {
      return await send();
    } catch (error) {
      const isCutOff = isKeysError(error) && (error.cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNRESET';
      // The connection was possibly closed at that moment.
      if (!isCutOff) throw error;
      return send();
    }
  }

  /** Does work that is aborted after some time. */
  async #within<Result>(
    durationMs: number,
    signal: AbortSignal | undefined,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const expiry = new AbortController();
    const timer = setTimeout(() => expiry.abort(new Error('no answer in time')), durationMs);
    try {
      return await work(signal ? AbortSignal.any([signal, expiry.signal]) : expiry.signal);
    } catch (error) {
      throw error instanceof KeysError || error instanceof FeedGone ? error : this.#unreachable(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Sends a request, and waits for the head of its answer. @throws KeysError; FeedGone */
  async #ask({ method = 'GET', path, body, agent, signal }: SentRequest, silenceMs = 0): Promise<IncomingMessage> {
    const content = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const headers = {
      Authorization: `Bearer ${this.#token.text}`,
      Accept: content ? 'application/json' : 'application/x-ndjson',
      'User-Agent': 'svc-api',
      ...(content
        ? { 'Content-Type': 'application/json', 'Content-Length': content.length }
        : { 'Accept-Encoding': 'zstd' }),
    };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const sent = this.#request(this.origin + path, { method, agent, headers, ...(signal && { signal }) }, resolve);
    sent.on('error', reject);
    if (silenceMs > 0) sent.setTimeout(silenceMs, () => sent.destroy(new Error('no answer in time')));
    sent.end(content);
    let answer: IncomingMessage;
    try {
      answer = await promise;
    } catch (error) {
      throw this.#unreachable(signal?.aborted ? signal.reason : error);
    }
    if (answer.statusCode === 200 || answer.statusCode === 204) return answer;
    throw await this.#refused(answer);
  }

  async #refused(answer: IncomingMessage): Promise<Error> {
    const { statusCode: status } = answer;
    const text = await readWhole(answer, MAX_ANSWER_BYTES).catch(() => '');
    const { message, code } = errorIn(text.toString());
    if (status === 410) return new FeedGone(message);
    const said = message === '' ? '' : `: ${printable(message, 300)}`;
    if (status === 401)
      return new KeysError('UNAUTHENTICATED', `The origin ${this.origin} does not accept the token${said}`);
    if (status === 403)
      return new KeysError(
        'FORBIDDEN',
        `The origin ${this.origin} refuses the token${said} An edge needs a key with EDGE:READ_ANY.`,
      );
    if (status === 400 || status === 413)
      return new KeysError('INPUT_INVALID', `The origin ${this.origin} rejects the request${said}`);
    if (status === 404 || status === 405) return this.#incompatible(`has no feed there (status ${status})`);
    return new KeysError(
      'SERVER_FAILED',
      `The origin ${this.origin} has failed (${code ?? `status ${status}`})${said}`,
    );
  }

  #unreachable(error: unknown): Error {
    if (error instanceof KeysError) return error;
    const { code, message } = error as NodeJS.ErrnoException;
    const direct = proxyNote(this.origin) === '' ? '' : ' Edges connect directly, without the proxy.';
    const what = `The origin ${this.origin} does not answer (${code ?? printable(message, 200)}).${direct}`;
    return new KeysError('SERVER_UNREACHABLE', what, { cause: error });
  }

  #incompatible(what: string): KeysError {
    return new KeysError(
      'SERVER_INCOMPATIBLE',
      `The origin ${this.origin} ${what}. Use the same version on both sides.`,
    );
  }

  #newAgent(): HttpAgent {
    const kept = { keepAlive: true, maxSockets: 1 };
    if (this.#request === httpRequest) return new HttpAgent(kept);
    return new HttpsAgent({ ...kept, ...this.#certificates() });
  }

  /** Reads the files again, because client certificates can be valid for only an hour. */
  #certificates(): { ca?: Buffer; cert?: Buffer; key?: Buffer } {
    const { ca, clientCert: cert, clientKey: key } = this.#options;
    return {
      ...(ca !== undefined && { ca: readPem(ca, '--ca') }),
      ...(cert !== undefined && { cert: readPem(cert, '--client-cert') }),
      ...(key !== undefined && { key: readPem(key, '--client-key') }),
    };
  }
}

/** @throws KeysError CONFIG_INVALID */
function checkCertificates({ ca, ...own }: SecureContextOptions): void {
  try {
    createSecureContext(own);
    if (ca) void new X509Certificate(ca as Buffer);
  } catch (error) {
    const message = printable((error as Error).message, 200);
    throw new KeysError(
      'CONFIG_INVALID',
      `The certificates for the origin cannot be used (${message}). Pass certificates in PEM with --ca and ` +
        '--client-cert, and the key of the client certificate with --client-key.',
    );
  }
}

/** @throws KeysError CONFIG_UNAVAILABLE */
function readPem(path: string, flag: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw new KeysError(
      'CONFIG_UNAVAILABLE',
      `The file of ${flag}, ${printable(path, 200)}, cannot be read (${code}).`,
    );
  }
}

function bodyOf(answer: IncomingMessage): Readable {
  if (answer.headers['content-encoding'] !== 'zstd') return answer;
  const plain = createZstdDecompress();
  answer.on('error', (error) => plain.destroy(error));
  return answer.pipe(plain);
}

/** The body of an answer. @throws Error if it breaks off, or is too long */
async function readWhole(answer: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of bodyOf(answer) as AsyncIterable<Buffer>) {
    pieces.push(piece);
    length += piece.length;
    if (length > maxBytes) throw new Error('the answer is too long');
  }
  return Buffer.concat(pieces);
}

/** Reads the error in an answer. */
function errorIn(text: string): { message: string; code: string | undefined } {
  try {
    const { errors } = JSON.parse(text) as { errors?: { message?: unknown; extensions?: { code?: unknown } }[] };
    const { message, extensions } = errors?.[0] ?? {};
    return {
      message: typeof message === 'string' ? message : '',
      code: typeof extensions?.code === 'string' ? printable(extensions.code, 50) : undefined,
    };
  } catch {
    return { message: '', code: undefined };
  }
}

/** From 1/2 to 1, so that edges that were disconnected together do not reconnect together. */
function jitter(): number {
  return (1 + Math.random()) / 2;
}

function pauseAfter(failures: number): number {
  return failures === 1 ? 0 : Math.min(PAUSE_MS * 2 ** (failures - 2), MAX_PAUSE_MS) * jitter();
}
