import type { Parts } from '../../keys/changes/index.ts';
import { USED_TOKENS } from '../../keys/repository/index.ts';
import { boundsAt, digestToken, MAX_SESSIONS, type Session, SESSION_MS, SESSIONS } from './session.ts';
import type { RandomBytes } from '../../keys/secret/index.ts';

const TOKEN_BYTES = 32;
const TOKEN = /^[\w-]{43}$/;
/** A use is not written again within this time, in milliseconds. */
const UNWRITTEN_MS = 60_000;
/** For how long it counts that a key was entered, in milliseconds: 5 minutes. */
const FRESH_MS = 5 * 60_000;

/**
 * Sessions of signed-in people. A session only stands for the secret it was started with: each request checks again
 * whether that is accepted, and its permissions.
 */
export class Sessions {
  readonly #options: Parts;

  constructor(options: Parts) {
    this.#options = options;
  }

  /**
   * Starts a session of a key.
   * @param secretDigest of the accepted secret
   * @param bind derives the token from the holder's part and from where it can be used
   * @returns the holder's part, which is the token if nothing is bound
   * @throws KeysError STORE_…
   */
  async begin(keyId: string, secretDigest: string, bind = (random: string) => random): Promise<string> {
    const { repository, clock, randomBytes } = this.#options;
    const random = newToken(randomBytes);
    const now = clock();
    const tokenDigest = digestToken(bind(random));
    const session = { tokenDigest, secretDigest, keyId, startedAt: now, usedAt: now, entry: null };
    await repository.write(async (writer) => {
      const sessions = writer.port(SESSIONS);
      await sessions.forget(boundsAt(now));
      await sessions.leaveNewest(keyId, MAX_SESSIONS - 1);
      await sessions.insert(session);
    });
    return random;
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
    const session = await repository.port(SESSIONS).find(digestToken(token));
    const { startedAfter, usedAfter } = boundsAt(clock());
    if (!session || session.startedAt <= startedAfter || session.usedAt <= usedAfter) return undefined;
    return session;
  }

  /**
   * Notes that a form of a session is being done, for all processes that share the store, as long as the session can
   * last.
   * @param form a digest of what identifies it
   * @returns whether it was not sent before; undefined if the session has ended
   * @throws KeysError STORE_…
   */
  async takeForm(token: string, form: string): Promise<boolean | undefined> {
    if (!TOKEN.test(token)) return undefined;
    const { repository, clock } = this.#options;
    return repository.write(async (writer) => {
      const session = await writer.port(SESSIONS).find(digestToken(token));
      return session && writer.port(USED_TOKENS).use(form, session.startedAt + SESSION_MS, clock());
    });
  }

  /** Forgets a form that has changed nothing: it can be sent again. @throws KeysError STORE_… */
  async giveBackForm(form: string): Promise<void> {
    await this.#options.repository.write((writer) => writer.port(USED_TOKENS).giveBack(form));
  }

  /**
   * Records that the key of a session was entered again.
   * @returns the proof of that, kept beside the token: someone who has only the token is not taken for its holder
   * @throws KeysError STORE_…
   */
  async noteEntry(token: string): Promise<string> {
    const proof = newToken(this.#options.randomBytes);
    const entry = { proofDigest: digestToken(proof), at: this.#options.clock() };
    await this.#options.repository.write((writer) => writer.port(SESSIONS).noteEntry(digestToken(token), entry));
    return proof;
  }

  /** Checks whether the key was entered in the last 5 minutes. @param proof of `noteEntry` */
  isFresh({ startedAt, entry }: Session, proof = ''): boolean {
    const now = this.#options.clock();
    const entered = entry?.proofDigest === digestToken(proof) ? [entry.at] : [];
    return [startedAt, ...entered].some((at) => Math.abs(now - at) < FRESH_MS);
  }

  /** Ends the session of a token, if there is one. @throws KeysError STORE_… */
  async end(token: string): Promise<void> {
    if (!TOKEN.test(token)) return;
    const tokenDigest = digestToken(token);
    await this.#options.repository.write((writer) => writer.port(SESSIONS).delete(tokenDigest), { revokes: true });
  }

  /** Runs in the background. If the use cannot be written, the session continues until it is idle. */
  #noteUse({ tokenDigest }: Session, now: number): void {
    this.#options.repository.write((writer) => writer.port(SESSIONS).touch(tokenDigest, now)).catch(() => {});
  }
}

function newToken(randomBytes: RandomBytes): string {
  return Buffer.from(randomBytes(TOKEN_BYTES)).toString('base64url');
}
