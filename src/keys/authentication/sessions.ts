import type { Parts } from '../changes/index.ts';
import {
  boundsAt,
  digestToken,
  type FormOutcome,
  MAX_OUTCOMES,
  MAX_SEALED_LENGTH,
  MAX_SESSIONS,
  OUTCOME_MS,
  type Session,
  SESSIONS,
} from '../repository/index.ts';
import type { RandomBytes } from '../secret/index.ts';

const TOKEN_BYTES = 32;
const TOKEN = /^[\w-]{43}$/;
/** A use is not written again within this time, in milliseconds. */
const UNWRITTEN_MS = 60_000;
/** For how long it counts that a key was entered, in milliseconds: 5 minutes. Less than outcomes are kept. */
const FRESH_MS = 5 * 60_000;

/**
 * The sessions of people who have signed in with a key. A session is a way to show the same secret again, and nothing
 * else: whether that is accepted, and what it may do, is decided anew with each request.
 */
export class Sessions {
  readonly #options: Parts;

  constructor(options: Parts) {
    this.#options = options;
  }

  /**
   * Begins a session of a key.
   * @param secretDigest of the secret that was shown, and accepted
   * @param bind makes its token of what its holder has, and of where that may be used
   * @returns what its holder gets, which is the token where nothing is bound
   * @throws KeysError STORE_…
   */
  async begin(keyId: string, secretDigest: string, bind = (random: string) => random): Promise<string> {
    const { repository, clock, randomBytes } = this.#options;
    const random = newToken(randomBytes);
    const now = clock();
    const tokenDigest = digestToken(bind(random));
    const session = { tokenDigest, secretDigest, keyId, startedAt: now, usedAt: now, outcomes: [] };
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
    if (session && now - session.usedAt >= UNWRITTEN_MS) this.#noteUse(token, session, now);
    return session;
  }

  /** The same, which counts as no use. @throws KeysError STORE_… */
  async look(token: string): Promise<Session | undefined> {
    if (!TOKEN.test(token)) return undefined;
    const { repository, clock } = this.#options;
    const session = await repository.port(SESSIONS).find(digestToken(token));
    const { startedAfter, usedAfter } = boundsAt(clock());
    if (!session || session.startedAt <= startedAfter || session.usedAt <= usedAfter) return undefined;
    return { ...session, outcomes: lasting(session.outcomes, clock()) };
  }

  /**
   * Changes what the forms of a session led to, alone: also where another process changes it.
   * @param change returns the list as it is to be, or undefined to leave it; it may be called again
   * @returns the list as it was; undefined if there is no such session any more
   * @throws KeysError STORE_…
   */
  async changeOutcomes(
    token: string,
    change: (outcomes: readonly FormOutcome[], now: number) => readonly FormOutcome[] | undefined,
  ): Promise<readonly FormOutcome[] | undefined> {
    if (!TOKEN.test(token)) return undefined;
    const { repository, clock } = this.#options;
    const now = clock();
    return repository.write(async (writer) => {
      const sessions = writer.port(SESSIONS);
      const session = await sessions.find(digestToken(token));
      if (!session) return undefined;
      const outcomes = lasting(session.outcomes, now);
      const changed = change(outcomes, now);
      if (changed) await sessions.keepOutcomes(session.tokenDigest, bounded(changed));
      return outcomes;
    });
  }

  /**
   * Notes that the key of a session was entered again.
   * @returns what shows that from now on, beside the token: whoever has got only that is not taken for its holder
   * @throws KeysError STORE_…
   */
  async noteEntry(token: string): Promise<string> {
    const proof = newToken(this.#options.randomBytes);
    const entry = { form: digestToken(proof), location: '', sealed: null, isSeen: false };
    await this.changeOutcomes(token, (outcomes, at) => [...outcomes, { ...entry, at }]);
    return proof;
  }

  /** Whether the key of a session was entered in the last 5 minutes. @param proof of `noteEntry` */
  isFresh({ startedAt, outcomes }: Session, proof = ''): boolean {
    const now = this.#options.clock();
    const entry = digestToken(proof);
    return [startedAt, ...outcomes.filter(({ form }) => form === entry).map(({ at }) => at)].some(
      (at) => Math.abs(now - at) < FRESH_MS,
    );
  }

  /** Ends the session of a token, if there is one. @throws KeysError STORE_… */
  async end(token: string): Promise<void> {
    if (!TOKEN.test(token)) return;
    const tokenDigest = digestToken(token);
    await this.#options.repository.write((writer) => writer.port(SESSIONS).delete(tokenDigest), { revokes: true });
  }

  /** Nobody waits for it, and a session whose use cannot be written goes on until it is idle. */
  #noteUse(token: string, { tokenDigest, outcomes }: Session, now: number): void {
    this.#options.repository.write((writer) => writer.port(SESSIONS).touch(tokenDigest, now)).catch(() => {});
    // What has lasted long enough is not kept either.
    if (outcomes.length > 0) this.changeOutcomes(token, (others) => others).catch(() => {});
  }
}

function newToken(randomBytes: RandomBytes): string {
  return Buffer.from(randomBytes(TOKEN_BYTES)).toString('base64url');
}

/** What forms led to that were sent not long ago. */
function lasting(outcomes: readonly FormOutcome[], now: number): readonly FormOutcome[] {
  return outcomes.filter(({ at }) => now - at < OUTCOME_MS);
}

/** The latest outcomes, of which the latest pages are shown: answers of forms that were not done have what is left. */
function bounded(outcomes: readonly FormOutcome[]): FormOutcome[] {
  const kindOf = ({ isAnswer, location }: FormOutcome) =>
    isAnswer ? 'answers' : location === null ? 'running' : 'done';
  const latest = (kind: keyof typeof MAX_OUTCOMES) =>
    outcomes.filter((outcome) => kindOf(outcome) === kind).slice(-MAX_OUTCOMES[kind]);
  let length = 0;
  const done = latest('done')
    .toReversed()
    .map((outcome) => {
      const isKept = length <= MAX_SEALED_LENGTH;
      length += outcome.sealed?.length ?? 0;
      return isKept ? outcome : { ...outcome, sealed: null };
    });
  const answers = latest('answers')
    .toReversed()
    .filter(({ sealed }) => {
      const isKept = length + sealed!.length <= MAX_SEALED_LENGTH;
      if (isKept) length += sealed!.length;
      return isKept;
    });
  return [...answers.toReversed(), ...done.toReversed(), ...latest('running')];
}
