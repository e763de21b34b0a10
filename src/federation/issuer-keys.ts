import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose';
import { freshSeconds, isLoopbackHost, readBounded } from '../keys/basics/index.ts';
import { readKeySet, type TokenIssuer, TokenRefused } from '../keys/consent/index.ts';

/** How long an issuer may take for all that is read of it, in milliseconds, and how long an answer is, in bytes. */
const [PATIENCE_MS, MAX_ANSWER_BYTES] = [5000, 256 * 1024];
/** How long what it has answered is fresh at least, whatever it says, and what a file has, in milliseconds. */
const [MIN_MS, FILE_MS] = [10_000, 1000];

/** The public keys of an issuer. */
interface KnownKeys {
  find: JWTVerifyGetKey | undefined;
  /** Until when they are fresh, and when they were last asked for, in milliseconds since 1970. */
  freshUntil: number;
  askedAt: number;
  /** While they are asked for. */
  reading: Promise<void> | undefined;
}

/**
 * The public keys of issuers. They are kept as long as HTTP allows (RFC 9111, section 4.2), and longer while their
 * issuer does not answer; they are read once for all who need them at a time, and no more often than every 10 seconds,
 * whatever tokens name. Those in a file are read anew once a second; where that fails, they are what they were.
 */
export class IssuerKeys {
  readonly #clock: () => number;
  readonly #patienceMs: number;
  readonly #known = new Map<string, KnownKeys>();

  /** @param clock milliseconds since 1970 */
  constructor(clock: () => number, patienceMs = PATIENCE_MS) {
    this.#clock = clock;
    this.#patienceMs = patienceMs;
  }

  /** Finds the key that a token of an issuer is signed with. @throws TokenRefused if nothing is known of the issuer */
  async of(issuer: TokenIssuer): Promise<JWTVerifyGetKey> {
    const known = this.#of(issuer);
    if (this.#clock() >= known.freshUntil) await this.#read(issuer, known);
    if (!known.find) throw new TokenRefused('The issuer of the token does not answer. Try again later.', 'unavailable');
    const { errors } = await import('./jose.ts');
    return async (header, token) => {
      try {
        return await known.find!(header, token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
        // It may have another one by now.
        await this.#read(issuer, known);
        return known.find!(header, token);
      }
    };
  }

  #of({ url, jwks }: TokenIssuer): KnownKeys {
    const place = JSON.stringify([url, jwks]);
    let known = this.#known.get(place);
    if (!known)
      this.#known.set(place, (known = { find: undefined, freshUntil: 0, askedAt: -Infinity, reading: undefined }));
    return known;
  }

  /** Reads the keys, unless that was tried a moment ago. A failure leaves what is known. */
  #read(issuer: TokenIssuer, known: KnownKeys): Promise<void> {
    const now = this.#clock();
    const minMs = typeof issuer.jwks === 'object' ? FILE_MS : MIN_MS;
    if (known.reading || Math.abs(now - known.askedAt) < minMs) return known.reading ?? Promise.resolve();
    known.askedAt = now;
    known.reading = this.#ask(issuer, known)
      .catch(() => {})
      .finally(() => (known.reading = undefined));
    return known.reading;
  }

  async #ask({ url, jwks }: TokenIssuer, known: KnownKeys): Promise<void> {
    const { createLocalJWKSet } = await import('./jose.ts');
    const { document, freshMs } =
      typeof jwks === 'object' ? { document: readKeySet(jwks.file), freshMs: FILE_MS } : await this.#fetch(url, jwks);
    known.find = createLocalJWKSet(document as unknown as JSONWebKeySet);
    known.freshUntil = this.#clock() + freshMs;
  }

  async #fetch(url: string, jwks: string | undefined) {
    const signal = AbortSignal.timeout(this.#patienceMs);
    return readJson(jwks ?? (await locate(url, url.startsWith('http:'), signal)), signal);
  }
}

/** Where the keys of an issuer are, by its metadata (OpenID Connect Discovery 1.0, section 4.3). */
async function locate(issuer: string, isPlain: boolean, signal: AbortSignal): Promise<string> {
  const { document } = await readJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, signal);
  const { issuer: named, jwks_uri: place } = document;
  if (named !== issuer) throw new Error('the metadata are those of another issuer');
  const url = typeof place === 'string' ? URL.parse(place) : null;
  const isSafe = url?.protocol === 'https:' || (isPlain && url?.protocol === 'http:' && isLoopbackHost(url.hostname));
  if (!url || !isSafe) throw new Error('the metadata name no safe place for keys');
  return url.href;
}

async function readJson(
  url: string,
  signal: AbortSignal,
): Promise<{ document: Record<string, unknown>; freshMs: number }> {
  const headers = { accept: 'application/json, application/jwk-set+json', 'user-agent': 'svc-api' };
  const answer = await fetch(url, { headers, redirect: 'error', signal });
  if (answer.status !== 200) throw new Error(`status ${answer.status}`);
  const text = Buffer.from((await readBounded(answer.body, MAX_ANSWER_BYTES)) ?? []).toString();
  const freshMs = Math.max(freshSeconds((name) => answer.headers.get(name)) * 1000, MIN_MS);
  return { document: JSON.parse(text) as Record<string, unknown>, freshMs };
}
