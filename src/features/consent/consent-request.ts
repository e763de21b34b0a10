import type { AuditAction, AuditNote, AuditValues } from '../../keys/audit/index.ts';
import { declarePort, KeysError } from '../../keys/basics/index.ts';
import type { ApiKey } from '../../keys/key/index.ts';
import type { ConsentFlow } from './consent-flow.ts';
import type { Grants } from '../../keys/repository/index.ts';

/** The status of a request that has not expired. */
export type ConsentStatus = 'PENDING' | 'APPROVED' | 'DENIED' | 'USED';

/** Time for a person to decide and the application to fetch its key, in milliseconds. */
export const REQUEST_MS = 600_000;
/** Lifetime of the code in a redirect, in milliseconds. */
export const CODE_MS = 60_000;
/** Time to keep an expired request, in milliseconds, so that its application learns the reason. */
export const KEPT_MS = 60_000;
/** The same for a used one, so that a code that is sent twice is recognized. */
export const KEPT_USED_MS = 3_600_000;
/**
 * Maximum number of requests in `REQUEST_MS`. Anyone can make one: beyond this, the source with the most requests loses
 * one.
 */
export const MAX_REQUESTS = 1000;
/** The same for one network. */
export const MAX_NETWORK_REQUESTS = 100;
/** At most this many pending requests are logged, so that clients without a key cannot fill the disk. */
export const MAX_NOTED_REQUESTS = 5;

/** Redirect target for the person, and the proof that the same application continues. */
export interface ConsentRedirect {
  uri: string;
  /** The application's own value, which is returned unchanged; null if there is none. */
  state: string | null;
  /** The S256 challenge (RFC 7636). */
  challenge: string;
}

/** The approver: a key with the public id of its secret, or a user of the command line, who has neither. */
export interface Approver {
  id: string | null;
  publicId: string | null;
  name: string;
}

/** The approval of a person. */
export interface ConsentApproval extends Grants {
  by: Approver;
  /** Time in milliseconds since 1970. */
  at: number;
  /** The name of the key that is to be created. */
  keyName: string;
  /** Expiry of the key in milliseconds since 1970; null if not chosen. */
  keyExpiresAt: number | null;
  /** The same as it was asked for: after a time, such as `30d`, or at one. */
  keyEnd: string | null;
}

/** A request of an application for a key. No code of it is kept, only digests. */
export interface ConsentRequest extends Grants {
  /** A UUID. */
  id: string;
  flow: ConsentFlow;
  /** The application. */
  client: {
    id: string;
    name: string;
    /** It refreshes the secrets of its key. */
    refreshes?: boolean;
  };
  /** The only address that the key will be valid for; null for any. */
  audience: string | null;
  /** The id of a key of the application that the new key will replace. */
  replaces: string | null;
  /** Requested lifetime of the key, as `30d`; null if not given. */
  keyExpiresIn: string | null;
  /** Address it came from; null if unknown. */
  address: string | null;
  /** The same as `sourceOf` has it. */
  source: string;
  /** The audit log has an entry about it. */
  isNoted: boolean;
  /** In milliseconds since 1970, as all times. */
  createdAt: number;
  /** From then on it counts as unknown. */
  expiresAt: number;
  status: ConsentStatus;
  /** Digest of the user code, or of the token of the page. */
  handleDigest: string;
  /** Digest of the code for fetching the key; null before the redirect. */
  codeDigest: string | null;
  /** Only of the flow CODE. */
  redirect: ConsentRedirect | null;
  approval: ConsentApproval | null;
  /** The id of the key that it got. */
  keyId: string | null;
  /** Time it got the key in milliseconds since 1970, and the salt for deriving the same secret; undefined before. */
  given?: { at: number; salt: string };
}

/** The refresh token of an application. */
export interface Refresh {
  /** The digest of the common part of all its refresh tokens. */
  family: string;
  /** The digest of the token that works. */
  current: string;
  /** Digest of the previous token, and the salt that derives the current one from it; null before the first refresh. */
  previous: string | null;
  salt: string | null;
  /** Expiry in milliseconds since 1970; null for never. */
  endsAt: number | null;
}

/** The application that was given a key; without `refresh`, it does not refresh the key. */
export interface GivenTo {
  readonly clientId: string;
  readonly refresh?: Refresh | undefined;
}

/** The digests that requests of applications are found by. */
export type ConsentDigest = 'handleDigest' | 'codeDigest';

/** Finds requests of applications for keys, also those that have ended and are still kept. */
export interface ConsentFinder {
  find(by: 'id' | ConsentDigest, value: string): Promise<ConsentRequest | undefined>;
  /** Lists open requests, oldest first. `now` is in milliseconds since 1970. */
  listOpen(now: number, limit: number): Promise<ConsentRequest[]>;
  /** The application that was given a key; undefined for a key that no application has asked for. */
  clientOf(keyId: string): Promise<string | undefined>;
  /** Finds the refresh token of a key. */
  findRefresh(family: string): Promise<(Refresh & { keyId: string }) | undefined>;
}

/** Counts of requests that have not expired. */
export interface RecentRequests {
  all: number;
  ofNetwork: number;
  /** Source of each request that is not approved, see `sourceOf`. */
  held: string[];
}

/** Changes requests of applications for keys, in a transaction. */
export interface ConsentWriter extends ConsentFinder {
  /** Counts requests that have not expired, with any status. `now` is in milliseconds since 1970. */
  recent(now: number, network: string): Promise<RecentRequests>;
  /** Removes the oldest request of a source that is not approved. */
  removeOldest(now: number, source: string): Promise<void>;
  insert(request: ConsentRequest): Promise<void>;
  update(request: ConsentRequest): Promise<void>;
  /** The applications of those of the keys that one was given, by the ids of the keys. */
  givenTo(keyIds: readonly string[]): Promise<ReadonlyMap<string, GivenTo>>;
  /** Remembers which application was given a key, until that is deleted. */
  rememberClient(keyId: string, given: GivenTo): Promise<void>;
  /** Replaces the refresh token of a key that an application was given. */
  keepRefresh(keyId: string, refresh: Refresh): Promise<void>;
  /** Makes used requests for one key refer to the key that replaces it. */
  replaceGivenKey(from: string, to: string): Promise<void>;
  /** Forgets those that ended before these times, in milliseconds since 1970. */
  forget(before: { used: number; unused: number }): Promise<void>;
}
/** The port for it. */
export const CONSENTS = declarePort<ConsentFinder, ConsentWriter>('consents');

/** The audit entry of an event of a request. @param about its key, the decision, and the address it came from */
export function requestEntry(
  action: Extract<AuditAction, `CONSENT_${string}`>,
  { id, client, flow }: ConsentRequest,
  {
    key,
    values,
    address,
  }: { key?: ApiKey | undefined; values?: AuditValues; address?: string | null | undefined } = {},
): AuditNote {
  return { action, key, after: { request: id, client: client.id, flow, ...values }, address };
}

/** Refuses a request that was already decided. @throws KeysError REQUEST_DECIDED */
export function refuseOver(request: Pick<ConsentRequest, 'client' | 'status'>): void {
  if (request.status === 'DENIED') throw decided(request, 'denied');
  if (request.status === 'USED') throw decided(request, 'approved');
}

/** The error for a request that was decided otherwise. */
export function decided({ client }: Pick<ConsentRequest, 'client'>, outcome: 'approved' | 'denied'): KeysError {
  return new KeysError('REQUEST_DECIDED', `The request of "${client.name}" was already ${outcome}.`);
}
