import { pathToFileURL } from 'node:url';
import type { createRemoteJWKSet, JWTVerifyGetKey } from 'jose';
import { freshSeconds } from '../consent/oauth/fresh-seconds.ts';
import { fetchFailure, isLoopbackHost, proxyNote, readBounded } from '../../keys/basics/index.ts';
import { TokenRefused } from './identified-token.ts';
import { readKeySet } from './key-set.ts';
import { type TokenIssuer, USUAL_KEYS_MAX_AGE } from './token-issuer.ts';

/** Time-out of all requests to an issuer, in milliseconds, and maximum size of an answer, in bytes. */
const [PATIENCE_MS, MAX_ANSWER_BYTES] = [5000, 256 * 1024];
/** Minimum time that an answer counts as fresh, and time for a file, in milliseconds. */
const [MIN_MS, FILE_MS] = [10_000, 1000];
/** Errors of jose that newer keys of the issuer can resolve. */
const OUTDATED = new Set<unknown>(['ERR_JWKS_NO_MATCHING_KEY', 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED']);

/** The public keys of an issuer. Times are in milliseconds since 1970. */
interface KnownKeys {
  readonly set: ReturnType<typeof createRemoteJWKSet>;
  /** For how long the last answer is fresh, which counts once its keys can be used, in milliseconds. */
  offeredMs: number;
  freshUntil: number;
  /** Time of the last request, and of the request that brought them. */
  askedAt: number;
  readAt: number;
  /** Error of the last attempt. */
  failure: Error | undefined;
}

/**
 * The public keys of issuers. They are read again when they are no longer fresh (RFC 9111, section 4.2), and when a
 * token does not verify by them: once for all who wait, and at most every 10 seconds (a file: every second). While an
 * issuer does not answer, its keys stay in use until they reach `keysMaxAge`.
 */
export class IssuerKeys {
  readonly #clock: () => number;
  readonly #patienceMs: number;
  readonly #known = new Map<string, KnownKeys>();

  /** @param options with a clock, in milliseconds since 1970 */
  constructor({ clock }: { readonly clock: () => number }, patienceMs = PATIENCE_MS) {
    this.#clock = clock;
    this.#patienceMs = patienceMs;
  }

  /**
   * Verifies a token by the keys of its issuer.
   * @param work is called again if it fails by keys that were read before the token came
   * @throws TokenRefused `unavailable`, if the keys are not known, too old, or possibly outdated; what `work` throws
   */
  async verify<Result>(issuer: TokenIssuer, work: (find: JWTVerifyGetKey) => Promise<Result>): Promise<Result> {
    const cameAt = this.#clock();
    const known = await this.#of(issuer);
    if (cameAt >= known.freshUntil || this.#isTooOld(issuer, known)) await this.#read(issuer, known);
    for (let isRepeated = false; ; isRepeated = true) {
      if (this.#isTooOld(issuer, known))
        throw new TokenRefused('The issuer of the token does not answer. Try again later.', 'unavailable', {
          cause: known.failure,
        });
      try {
        return await work(known.set);
      } catch (error) {
        // A clock that was set back makes no keys newer than the token.
        const isNewer = known.readAt >= cameAt && known.readAt <= this.#clock();
        if (isNewer || !OUTDATED.has((error as { code?: unknown }).code)) throw error;
        if (isRepeated)
          throw new TokenRefused(
            "The token does not verify with its issuer's known keys. Try again in 10 seconds.",
            'unavailable',
            { cause: known.failure },
          );
        await this.#read(issuer, known);
      }
    }
  }

  /** Reads the keys of an issuer. @returns why that fails; undefined if it does not */
  async failureOf(issuer: TokenIssuer): Promise<string | undefined> {
    const known = await this.#of(issuer);
    await this.#read(issuer, known);
    return known.failure?.message;
  }

  async #of({ url, jwks }: TokenIssuer): Promise<KnownKeys> {
    const { createRemoteJWKSet, customFetch } = await import('./jose.ts');
    const place = JSON.stringify([url, jwks]);
    const before = this.#known.get(place);
    if (before) return before;
    const set = createRemoteJWKSet(typeof jwks === 'object' ? pathToFileURL(jwks.file) : new URL(jwks ?? url), {
      // Only `#read` reads them, by the injected clock and the freshness that the issuer states.
      cacheMaxAge: Infinity,
      cooldownDuration: Infinity,
      timeoutDuration: this.#patienceMs,
      [customFetch]: async (_place: string, { signal }: { signal: AbortSignal }) => {
        if (typeof jwks === 'object') return Response.json(readKeySet(jwks.file));
        const answer = await ask(jwks ?? (await locate(url, url.startsWith('http:'), signal)), signal);
        known.offeredMs = Math.max(freshSeconds((name) => answer.headers.get(name)) * 1000, MIN_MS);
        return answer;
      },
    });
    const never = -Infinity;
    const known: KnownKeys = {
      set,
      offeredMs: FILE_MS,
      freshUntil: never,
      askedAt: never,
      readAt: never,
      failure: undefined,
    };
    this.#known.set(place, known);
    return known;
  }

  /** Checks whether keys are missing or too old to use. */
  #isTooOld({ keysMaxAge = USUAL_KEYS_MAX_AGE }: TokenIssuer, { readAt }: KnownKeys): boolean {
    return this.#clock() - readAt >= keysMaxAge * 1000;
  }

  /** Reads the keys, unless that was tried a moment ago. A failure leaves those that are known. */
  async #read({ url, jwks }: TokenIssuer, known: KnownKeys): Promise<void> {
    const now = this.#clock();
    const minMs = typeof jwks === 'object' ? FILE_MS : MIN_MS;
    if (!known.set.reloading) {
      if (Math.abs(now - known.askedAt) < minMs) return;
      known.askedAt = now;
    }
    const { askedAt } = known;
    try {
      await known.set.reload();
      [known.readAt, known.freshUntil, known.failure] = [askedAt, askedAt + known.offeredMs, undefined];
    } catch (error) {
      const note = typeof jwks === 'object' ? '' : proxyNote(jwks ?? url);
      known.failure = new Error(`${fetchFailure(error).replace(/\.$/, '')}.${note}`, { cause: error });
    }
  }
}

/** Finds the address of an issuer's keys in its metadata (OpenID Connect Discovery 1.0, section 4.3). */
async function locate(issuer: string, isPlain: boolean, signal: AbortSignal): Promise<string> {
  const answer = await ask(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, signal);
  const { issuer: named, jwks_uri: place } = (await answer.json()) as Record<string, unknown>;
  if (named !== issuer) throw new Error('the metadata is that of another issuer');
  const url = typeof place === 'string' ? URL.parse(place) : null;
  const isSafe = url?.protocol === 'https:' || (isPlain && url?.protocol === 'http:' && isLoopbackHost(url.hostname));
  if (!url || !isSafe) throw new Error('the metadata has no safe address for the keys');
  return url.href;
}

/** Asks an issuer. @returns its answer, read within bounds */
async function ask(url: string, signal: AbortSignal): Promise<Response> {
  const headers = { accept: 'application/json, application/jwk-set+json', 'user-agent': 'svc-api' };
  const answer = await fetch(url, { headers, redirect: 'error', signal });
  if (answer.status !== 200) throw new Error(`status ${answer.status}`);
  return new Response(await readBounded(answer.body, MAX_ANSWER_BYTES), { headers: answer.headers });
}
