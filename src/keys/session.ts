import { hash } from 'node:crypto';
import { declarePort } from './port.ts';

/** How long a session lasts at most, in milliseconds: 8 hours. */
export const SESSION_MS = 8 * 60 * 60 * 1000;
/** After which time without a request it ends, in milliseconds: 30 minutes. */
const IDLE_MS = 30 * 60 * 1000;
/** How long it is known what a form led to, and can be shown, in milliseconds: 10 minutes. */
export const OUTCOME_MS = 10 * 60 * 1000;
/** The outcomes of how many forms are kept with a session, by what became of them: none takes the place of another. */
export const MAX_OUTCOMES = { answers: 10, done: 30, running: 10 } as const;
/** How many characters of sealed pages are kept with a session, beside the latest one: each request reads all. */
export const MAX_SEALED_LENGTH = 200_000;
/** How many a key has at most; beyond that, the one that was used least recently ends. */
export const MAX_SESSIONS = 20;

/** Somebody has shown a secret, and goes on by a token. Times are milliseconds since 1970. */
export interface Session {
  /** What is kept of the token: see `digestToken`. */
  readonly tokenDigest: string;
  /** The digest of the secret that was shown. While that is accepted, the session is. */
  readonly secretDigest: string;
  /** The id of the key that the secret was of. */
  readonly keyId: string;
  readonly startedAt: number;
  /** When it was last used, but for up to a minute. */
  readonly usedAt: number;
  /** What its latest forms led to: of those that were not done, were done, and are being done; each by their time. */
  readonly outcomes: readonly FormOutcome[];
}

/** What a form led to that was sent: it is done once, however often it is sent. */
export interface FormOutcome {
  /** A digest of what identifies the form. */
  readonly form: string;
  /** When it was first sent, in milliseconds since 1970. */
  readonly at: number;
  /** The address that it led to; null while what it asks for is being done. */
  readonly location: string | null;
  /** What is shown there, sealed: the store alone does not open it. Null if nothing is, or no more. */
  readonly sealed: string | null;
  /** Whether that has been shown, and is to be gone once somebody leaves it. */
  readonly isSeen: boolean;
  /** Whether it is the answer of a form that was not done, such as one with problems: it has no secret. */
  readonly isAnswer?: boolean;
}

/** The earliest times of sessions that have not ended, in milliseconds since 1970. */
export interface SessionBounds {
  readonly startedAfter: number;
  readonly usedAfter: number;
}

/** Finds sessions, also those that have ended and are still kept. */
export interface SessionFinder {
  find(tokenDigest: string): Promise<Session | undefined>;
}

/** Changes sessions, in a transaction. */
export interface SessionWriter extends SessionFinder {
  insert(session: Session): Promise<void>;
  /** Notes that a session was used at a time, in milliseconds since 1970. */
  touch(tokenDigest: string, usedAt: number): Promise<void>;
  keepOutcomes(tokenDigest: string, outcomes: readonly FormOutcome[]): Promise<void>;
  delete(tokenDigest: string): Promise<void>;
  /** Deletes the sessions of a key, except so many that were used last. */
  leaveNewest(keyId: string, count: number): Promise<void>;
  /** Deletes those that have ended. */
  forget(bounds: SessionBounds): Promise<void>;
}
/** The port for it. */
export const SESSIONS = declarePort<SessionFinder, SessionWriter>('sessions');

/** Which sessions have not ended at a time. */
export function boundsAt(now: number): SessionBounds {
  return { startedAfter: now - SESSION_MS, usedAfter: now - IDLE_MS };
}

/** What is kept of a token. Not what is kept of a secret: neither is ever taken for the other. */
export function digestToken(token: string): string {
  return hash('sha256', `session:${token}`, 'base64url');
}
