import type { AuditAction, AuditNote, AuditValues } from '../../keys/audit/index.ts';
import { declarePort, KeysError } from '../../keys/basics/index.ts';
import type { ApiKey } from '../../keys/key/index.ts';
import type { ConsentFlow } from './consent-flow.ts';
import type { Grants } from '../../keys/repository/index.ts';

/** What became of a request, as long as it has not ended. */
export type ConsentStatus = 'PENDING' | 'APPROVED' | 'DENIED' | 'USED';

/** How long a person has to decide, and the application to get its key, in milliseconds. */
export const REQUEST_MS = 600_000;
/** How long the code of a redirect may be on its way, in milliseconds. */
export const CODE_MS = 60_000;
/** How long a request is kept after its end, in milliseconds: so long its application is told why it gets nothing. */
export const KEPT_MS = 60_000;
/** The same for one that was used, so that a code that comes twice is known. */
export const KEPT_USED_MS = 3_600_000;
/**
 * The most requests in `REQUEST_MS`, whatever becomes of them. Anybody may make one: beyond that, who holds most of
 * this room gives way.
 */
export const MAX_REQUESTS = 1000;
/** The same for one network. */
export const MAX_NETWORK_REQUESTS = 100;
/** Of how many of them the audit log has an entry before somebody has agreed: nobody fills a disk without a key. */
export const MAX_NOTED_REQUESTS = 5;

/** Where a page sends the person back to, and by what the application proves that it is the same one. */
export interface ConsentRedirect {
  uri: string;
  /** The application's own, which comes back as it was; null if there is none. */
  state: string | null;
  /** The S256 challenge (RFC 7636). */
  challenge: string;
}

/** Who agreed: a key, by the secret with this public id, or a user of the command line, who has neither. */
export interface Approver {
  id: string | null;
  publicId: string | null;
  name: string;
}

/** What a person has agreed to. */
export interface ConsentApproval extends Grants {
  by: Approver;
  /** When, in milliseconds since 1970; undefined in what an older version has kept. */
  at?: number;
  /** The name of the key that is to be created. */
  keyName: string;
  /** When that key is to end, in milliseconds since 1970; null if nobody said so. */
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
    /** Whether it replaces the secrets of its key by itself; undefined in what an older version has kept. */
    refreshes?: boolean;
  };
  /** The address that the key is to be for alone; undefined in what an older version has kept. */
  audience?: string | null;
  /** The id of a key of the application whose place the key is to take. */
  replaces?: string | null;
  /** After which time the key is to end, as `30d`; null if the application did not say. */
  keyExpiresIn: string | null;
  /** Where it came from; null if that is not known. */
  address: string | null;
  /** The same as `sourceOf` has it. */
  source: string;
  /** Whether the audit log has that it was made. */
  isNoted: boolean;
  /** In milliseconds since 1970, as all times. */
  createdAt: number;
  /** From then on it counts as unknown. */
  expiresAt: number;
  status: ConsentStatus;
  /** The digest of what a person decides by: the user code, or the page that they were shown. */
  handleDigest: string;
  /** The digest of what the application gets its key by; null for a redirect that has not been made yet. */
  codeDigest: string | null;
  /** Only of the flow CODE. */
  redirect: ConsentRedirect | null;
  approval: ConsentApproval | null;
  /** The id of the key that it got. */
  keyId: string | null;
  /** When it got it, in milliseconds since 1970, and by what the same secret is derived; undefined before. */
  given?: { at: number; salt: string };
}

/** By what an application replaces the secret of its key. */
export interface Refresh {
  /** The digest of what all its tokens for this have in common. */
  family: string;
  /** The digest of the token that works. */
  current: string;
  /** The digest of the one before it, and by what it has brought the present one; null before the first time. */
  previous: string | null;
  salt: string | null;
  /** When that ends, in milliseconds since 1970; null for never. */
  endsAt: number | null;
}

/** The digests that requests of applications are found by. */
export type ConsentDigest = 'handleDigest' | 'codeDigest';

/** Finds requests of applications for keys, also those that have ended and are still kept. */
export interface ConsentFinder {
  find(by: 'id' | ConsentDigest, value: string): Promise<ConsentRequest | undefined>;
  /** Those that are open at a time, in milliseconds since 1970, oldest first. */
  listOpen(now: number, limit: number): Promise<ConsentRequest[]>;
  /** The application that was given a key; undefined for a key that no application has asked for. */
  clientOf(keyId: string): Promise<string | undefined>;
  /** By what an application replaces the secret of a key. */
  findRefresh(family: string): Promise<(Refresh & { keyId: string }) | undefined>;
  /** The same by the key; undefined where its application does not replace it. */
  refreshOf(keyId: string): Promise<Refresh | undefined>;
}

/** What there is of requests that have not ended. */
export interface RecentRequests {
  all: number;
  ofNetwork: number;
  /** The source of each to which nobody has agreed, see `sourceOf`. */
  held: string[];
}

/** Changes requests of applications for keys, in a transaction. */
export interface ConsentWriter extends ConsentFinder {
  /** Those that have not ended at a time, in milliseconds since 1970, whatever became of them. */
  recent(now: number, network: string): Promise<RecentRequests>;
  /** Removes the oldest one of a source to which nobody has agreed. */
  removeOldest(now: number, source: string): Promise<void>;
  insert(request: ConsentRequest): Promise<void>;
  update(request: ConsentRequest): Promise<void>;
  /** The applications of those of the keys that one was given, by the ids of the keys. */
  clientsOf(keyIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Remembers which application was given a key, until that is deleted. */
  rememberClient(keyId: string, clientId: string): Promise<void>;
  /** Keeps by what its application replaces the secret of a key, until that is deleted. */
  keepRefresh(keyId: string, refresh: Refresh): Promise<void>;
  /** Lets used requests that gave one key have given another, which takes its place. */
  replaceGivenKey(from: string, to: string): Promise<void>;
  /** Forgets those that ended before these times, in milliseconds since 1970. */
  forget(before: { used: number; unused: number }): Promise<void>;
}
/** The port for it. */
export const CONSENTS = declarePort<ConsentFinder, ConsentWriter>('consents');

/**
 * What becomes of a request, for the audit log.
 * @param about the key that it got, what was decided, and where that came from
 */
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

/** Refuses a request that nobody can agree to any more. @throws KeysError REQUEST_DECIDED */
export function refuseOver(request: Pick<ConsentRequest, 'client' | 'status'>): void {
  if (request.status === 'DENIED') throw decided(request, 'refused');
  if (request.status === 'USED') throw decided(request, 'approved');
}

/** The error for a request that was decided otherwise. */
export function decided({ client }: Pick<ConsentRequest, 'client'>, outcome: 'approved' | 'refused'): KeysError {
  return new KeysError('REQUEST_DECIDED', `The request of "${client.name}" was ${outcome} already.`);
}
