import { hash, randomBytes } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { SignInFailed } from './failure.ts';
import type { Expected, Provider } from './provider.ts';
import type { Identified } from './proxy-headers.ts';

/** Time for a sign-in at a provider, in milliseconds. */
export const SIGN_IN_MS = 10 * 60_000;

/** A sign-in at a provider that has started. */
export interface PendingSignIn {
  /** Cookie that identifies the browser when it comes back, so that no other one can finish the sign-in. */
  readonly cookie: { readonly name: string; readonly value: string };
  /** Address to sign in at. */
  readonly location: string;
}

/** A provider, with the redirect back from it. */
interface SignInPlace {
  readonly provider: Provider;
  /** The address that the provider sends them back to, at the host that they have come to. */
  readonly redirectUri: string;
  /** Milliseconds since 1970. */
  readonly now: number;
}

const COOKIE = 'svc_api_sign_in_';
const RANDOM_BYTES = 32;
/** Maximum length of the compressed address to return to. */
const MAX_PACKED = 3500;
/** A random part, its time, and the address to return to. */
const VALUE = /^([\w-]{43})\.(\d{1,15})\.([\w-]*)$/;

/**
 * Starts a sign-in.
 * @param next address to return to, which only this person can change
 * @throws SignInFailed if the provider does not answer
 */
export async function beginSignIn({ provider, redirectUri, now }: SignInPlace, next: string): Promise<PendingSignIn> {
  const packed = deflateRawSync(next).toString('base64url');
  // Browsers keep no larger cookies.
  const kept = packed.length <= MAX_PACKED ? packed : '';
  const value = [randomBytes(RANDOM_BYTES).toString('base64url'), now, kept].join('.');
  const expected = expectedBy(value, redirectUri);
  return {
    cookie: { name: nameFor(expected.state), value },
    location: await provider.authorizationUrl(expected),
  };
}

/**
 * Identifies the person who comes back from a provider.
 * @param query of the address, with its question mark
 * @param cookieOf reads a cookie of their browser
 * @returns also the address to return to, and the used cookie
 * @throws SignInFailed
 */
export async function finishSignIn(
  { provider, redirectUri, now }: SignInPlace,
  query: string,
  cookieOf: (name: string) => string | undefined,
): Promise<Identified & { readonly next: string; readonly cookie: string }> {
  const states = new URLSearchParams(query).getAll('state');
  const cookie = nameFor(states[0] ?? '');
  const value = cookieOf(cookie);
  const [, , at, next = ''] = VALUE.exec(value ?? '') ?? [];
  const expected = expectedBy(value ?? '', redirectUri);
  if (value === undefined || at === undefined || states.length !== 1 || states[0] !== expected.state)
    throw new SignInFailed(
      400,
      'This sign-in was not started in this browser, or is already finished. Start again.',
      'state',
    );
  if (Math.abs(now - Number(at)) > SIGN_IN_MS)
    throw new SignInFailed(400, 'The sign-in took longer than 10 minutes. Start again.', 'late');
  const identified = await provider.identify(query, expected);
  const packed = Buffer.from(next, 'base64url');
  return { ...identified, next: packed.length === 0 ? '' : inflateRawSync(packed).toString(), cookie };
}

/** Derives the expected values from the random part, which is only in the cookie. None of them reveals another. */
function expectedBy(value: string, redirectUri: string): Expected {
  const part = (name: string) => hash('sha256', `${name} ${redirectUri} ${value}`, 'base64url');
  return { redirectUri, state: part('state'), nonce: part('nonce'), verifier: part('verifier') };
}

const NAME_LENGTH = 16;

/** A cookie for each sign-in, since several pages of a browser can sign in at once. */
function nameFor(state: string): string {
  return COOKIE + state.replaceAll(/[^\w-]/g, '').slice(0, NAME_LENGTH);
}
