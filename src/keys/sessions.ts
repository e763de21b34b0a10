import type { KeyRepository } from './repository.ts';
import type { RandomBytes } from './secret/secret.ts';
import { boundsAt, digestToken, MAX_SESSIONS, type Session } from './session.ts';

/** What sessions need from outside. */
export interface SessionsOptions {
  repository: KeyRepository;
  /** Milliseconds since 1970. */
  clock: () => number;
  randomBytes: RandomBytes;
}

const TOKEN_BYTES = 32;
const TOKEN = /^[\w-]{43}$/;
/** A use is not written again within this time, in milliseconds. */
const UNWRITTEN_MS = 60_000;

/**
 * The sessions of people who have signed in with a key. A session is a way to show the same secret again, and nothing
 * else: whether that is accepted, and what it may do, is decided anew with each request.
 */
export class Sessions {
  readonly #options: SessionsOptions;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /**
   * Begins a session of a key.
   * @param secretDigest of the secret that was shown, and accepted
   * @returns its token
   * @throws KeysError STORE_…
   */
  async begin(keyId: string, secretDigest: string): Promise<string> {
    const { repository, clock, randomBytes } = this.#options;
    const token = Buffer.from(randomBytes(TOKEN_BYTES)).toString('base64url');
    const now = clock();
    const session = { tokenDigest: digestToken(token), secretDigest, keyId, startedAt: now, usedAt: now };
    await repository.write(async ({ sessions }) => {
      await sessions.forget(boundsAt(now));
      await sessions.leaveNewest(keyId, MAX_SESSIONS - 1);
      await sessions.insert(session);
    });
    return token;
  }

  /** The session of a token, unless it has ended. Counts as a use of it. @throws KeysError STORE_… */
  async find(token: string): Promise<Session | undefined> {
    const session = await this.look(token);
    const now = this.#options.clock();
    if (session && now - session.usedAt >= UNWRITTEN_MS) this.#noteUse(session, now);
    return session;
  }

  /** The same, which counts as no use. @throws KeysError STORE_… */
  async look(token: string): Promise<Session | undefined> {
    if (!TOKEN.test(token)) return undefined;
    const { repository, clock } = this.#options;
    const session = await repository.sessions.find(digestToken(token));
    const { startedAfter, usedAfter } = boundsAt(clock());
    return session && session.startedAt > startedAfter && session.usedAt > usedAfter ? session : undefined;
  }

  /** Ends the session of a token, if there is one. @throws KeysError STORE_… */
  async end(token: string): Promise<void> {
    if (!TOKEN.test(token)) return;
    const tokenDigest = digestToken(token);
    await this.#options.repository.write(({ sessions }) => sessions.delete(tokenDigest), { revokes: true });
  }

  /** Nobody waits for it, and a session whose use cannot be written goes on until it is idle. */
  #noteUse({ tokenDigest }: Session, now: number): void {
    this.#options.repository.write(({ sessions }) => sessions.touch(tokenDigest, now)).catch(() => {});
  }
}
