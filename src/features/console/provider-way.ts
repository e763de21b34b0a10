import type { Context, Hono } from 'hono';
import { getCookie } from 'hono/cookie';
import { type BearerEnv, readQuery } from '../../http/index.ts';
import type { PeopleSignIn } from '../people/people-sign-in.ts';
import { SIGN_IN_MS } from '../people/at-provider.ts';
import { SignInFailed } from '../people/failure.ts';
import { withQuery } from './links.ts';
import { type SessionAuth, setOwnCookie } from './session-auth.ts';
import { seeOther } from './visit.tsx';
import { prefixFor, type SeenOrigin } from '../sessions/index.ts';

/** Parts for signing in at a provider and coming back. */
interface ProviderWay {
  readonly people: PeopleSignIn;
  readonly sessionAuth: SessionAuth;
  readonly seenBy: (c: Context) => SeenOrigin;
  /** Parameter with the address to return to. */
  readonly parameter: string;
  /** Reads the address to return to, and drops one that is not allowed. */
  readonly readNext: (text: string) => string;
  /** Address of `path` as browsers see it. */
  readonly addressOf: (c: Context) => string;
  /** Counts a failed sign-in. @returns microseconds to wait, if any */
  readonly countFailure: (c: Context) => number | undefined;
  /** Answers, and turns errors into a page. */
  readonly guarded: (c: Context, answer: () => Promise<Response>) => Promise<Response>;
  /** Opens the next page from a page of ours, so that the browser sends the session cookie. */
  readonly leadOn: (c: Context, next: string) => Promise<Response>;
}

/** Address that starts a sign-in at the provider. @param page address of the sign-in page, without a query */
export function startOf(page: string, parameter: string, next: string): string {
  return withQuery(`${page}/start`, { [parameter]: next });
}

/** Adds the redirect to a provider and the callback. @param path of the sign-in page */
export function addProviderWay(app: Hono<BearerEnv>, path: string, way: ProviderWay): void {
  const { people, sessionAuth, seenBy, parameter, readNext, guarded } = way;
  const callbackOf = (c: Context) => `${way.addressOf(c)}/callback`;
  // Lax: the browser comes back from another site.
  const setPending = (c: Context, name: string, value: string, maxAge: number) =>
    setOwnCookie(c, name, { value, seen: seenBy(c), maxAge, sameSite: 'Lax' });

  app.get(`${path}/start`, (c) =>
    guarded(c, async () => {
      const next = readNext(readQuery(c).get(parameter) ?? '');
      // Only from a page of ours.
      const site = c.req.header('sec-fetch-site') ?? 'none';
      if ((site !== 'same-origin' && site !== 'none') || !seenBy(c).isPrivate)
        return seeOther(c, startOf('../sign-in', parameter, next).replace('/start', ''));
      const { cookie, location } = await people.begin(callbackOf(c), next);
      setPending(c, cookie.name, cookie.value, SIGN_IN_MS / 1000);
      return seeOther(c, location);
    }),
  );
  app.get(`${path}/callback`, (c) =>
    guarded(c, async () => {
      const seen = seenBy(c);
      try {
        const { search } = new URL(c.req.url);
        const identified = await people.finish(callbackOf(c), search, (name) => getCookie(c, name, prefixFor(seen)));
        setPending(c, identified.cookie, '', 0);
        await sessionAuth.signInAs(c, identified, seen);
        return await way.leadOn(c, readNext(identified.next));
      } catch (error) {
        const waitUs = error instanceof SignInFailed && error.status !== 503 ? way.countFailure(c) : undefined;
        if (waitUs === undefined) throw error;
        c.header('Retry-After', `${Math.ceil(waitUs / 1_000_000)}`);
        throw new SignInFailed(429, 'Too many failed sign-ins from your address. Try again later.', 'limited');
      }
    }),
  );
}
