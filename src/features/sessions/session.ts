import { hash } from 'node:crypto';
import { declarePort } from '../../keys/basics/index.ts';

/** Maximum lifetime of a session, in milliseconds: 8 hours. */
export const SESSION_MS = 8 * 60 * 60 * 1000;
/** Idle time after which it ends, in milliseconds: 30 minutes. */
const IDLE_MS = 30 * 60 * 1000;
/** Maximum number of sessions of a key; beyond this, the least recently used one ends. */
export const MAX_SESSIONS = 100;

/** A session that was started with a secret and continues with a token. Times are milliseconds since 1970. */
export interface Session {
  /** The digest of the token: see `digestToken`. */
  readonly tokenDigest: string;
  /** The digest of the secret that was shown. While that is accepted, the session is. */
  readonly secretDigest: string;
  /** The id of the key that the secret was of. */
  readonly keyId: string;
  readonly startedAt: number;
  /** Time of its last use, up to a minute late. */
  readonly usedAt: number;
  /** Last time the key was entered again, or null. */
  readonly entry: SessionEntry | null;
}

/** The key of a session was entered again. */
export interface SessionEntry {
  /** The digest of the proof: see `digestToken`. */
  readonly proofDigest: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** The earliest times of sessions that have not ended, in milliseconds since 1970. */
interface SessionBounds {
  readonly startedAfter: number;
  readonly usedAfter: number;
}

/** Finds sessions, also those that have ended and are still kept. */
interface SessionFinder {
  find(tokenDigest: string): Promise<Session | undefined>;
}

/** Changes sessions, in a transaction. */
export interface SessionWriter extends SessionFinder {
  insert(session: Session): Promise<void>;
  /** Notes that a session was used at a time, in milliseconds since 1970. */
  touch(tokenDigest: string, usedAt: number): Promise<void>;
  /** Notes that its key was entered again, in place of the time before. */
  noteEntry(tokenDigest: string, entry: SessionEntry): Promise<void>;
  delete(tokenDigest: string): Promise<void>;
  /** Deletes the sessions of these keys. */
  end(keyIds: readonly string[]): Promise<void>;
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

/** The digest that is kept of a token. It differs from that of a secret: neither is ever taken for the other. */
export function digestToken(token: string): string {
  return hash('sha256', `session:${token}`, 'base64url');
}
