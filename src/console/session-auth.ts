import type { Context } from 'hono';
import type { Authenticator } from '../keys/authentication/authenticator.ts';
import type { OrRefusal } from '../keys/errors.ts';
import type { Sessions } from '../keys/sessions.ts';
import type { Admitted, BearerCheck } from '../http/bearer-check.ts';
import { HonoHead } from '../http/received.ts';
import { admitKey, type RefusedPerson, refusedPerson } from '../http/form.ts';
import type { SeenOrigin } from './session-cookie.ts';
import { giveSessionToken, sessionTokenIn, takeSessionToken } from './session-cookie.ts';

/** What signing people in takes. */
export interface SessionAuthParts {
  readonly sessions: Sessions;
  readonly authenticator: Authenticator;
  readonly check: BearerCheck;
}

/** Somebody is accepted, has no session, or is refused although they have one. */
export type Entry = OrRefusal<Admitted, RefusedPerson> | 'signed out';

/** Accepts people who have signed in, as their key would be. */
export class SessionAuth {
  readonly #parts: SessionAuthParts;

  constructor(parts: SessionAuthParts) {
    this.#parts = parts;
  }

  /** Who makes a request. It counts as a use of their key, within its limits and from its networks. */
  async enter(c: Context, seen: SeenOrigin): Promise<Entry> {
    const { sessions, check } = this.#parts;
    const token = sessionTokenIn(c, seen);
    const session = token === undefined ? undefined : await sessions.find(token);
    if (!session) return 'signed out';
    const admission = await check.enterBy(new HonoHead(c), session.secretDigest);
    if (!('refusal' in admission)) return admission;
    if (admission.refusal.status !== 401) return { refusal: refusedPerson(admission.refusal) };
    // Somebody may have rotated the key that they have signed in with, and is about to see its new secret.
    if (session.outcomes.every(({ sealed }) => sealed === null)) await this.signOut(c, seen);
    return 'signed out';
  }

  /** Begins a session of somebody who shows a key. */
  async signIn(c: Context, key: string, seen: SeenOrigin): Promise<OrRefusal<Admitted, RefusedPerson>> {
    const admission = await admitKey(c, key, this.#parts.check);
    if ('refusal' in admission) return admission;
    await this.#end(c, seen);
    const { principal, digest } = admission;
    giveSessionToken(c, await this.#parts.sessions.begin(principal.apiKey.id, digest), seen);
    return admission;
  }

  /** Ends a session. If that cannot be written, the browser has the token no more all the same. */
  async signOut(c: Context, seen: SeenOrigin): Promise<void> {
    takeSessionToken(c, seen);
    await this.#end(c, seen);
  }

  /** Whether somebody is signed in. Counts as no use, neither of the session nor of the key. */
  async isSignedIn(c: Context, seen: SeenOrigin): Promise<boolean> {
    const { sessions, authenticator } = this.#parts;
    const token = sessionTokenIn(c, seen);
    const session = token === undefined ? undefined : await sessions.look(token);
    return session !== undefined && (await authenticator.accepts(session.secretDigest));
  }

  async #end(c: Context, seen: SeenOrigin): Promise<void> {
    const token = sessionTokenIn(c, seen);
    if (token !== undefined) await this.#parts.sessions.end(token);
  }
}
