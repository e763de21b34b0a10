import type { ApplyRules, DeclaredKey, PlannedChange, PlannedChanges } from './apply/declaration.ts';
import type { AuditEntry } from './audit/audit-entry.ts';
import type { AuditRequest } from './audit/audit-log.ts';
import type { AncestorLimit } from './authorization/chain.ts';
import type { AccessDecision } from './authorization/explain.ts';
import type { Suggestion } from './authorization/suggest.ts';
import type { ConsentChoice } from './consent/approval.ts';
import type { Issued } from './changes/contain.ts';
import type { ConfusableName } from './changes/confusable-names.ts';
import type { KeyPreview } from './changes/create.ts';
import type { SecretDelivery } from './changes/delivery.ts';
import type { ConsentApproval, ConsentRequest } from './requests/consent-request.ts';
import type { ApiKey, KeyChange, KeyFields, NewKey } from './key/api-key.ts';
import type { Rotation, RotationRequest } from './key/rotation.ts';
import type { Status } from './key/status.ts';
import type { UsageTotals } from './key/usage.ts';
import type { PageQuery } from './list.ts';
import type { Catalog, Grant, Permission } from './permissions/catalog.ts';
import type { UsageByPeriod } from './usage/periods.ts';
import type { UsageRequest } from './usage/usage-request.ts';

/** A key, and what the rules say of it now. */
export interface KeyState {
  readonly apiKey: KeyFields;
  /** Counts its ancestors. */
  readonly status: Status;
  /** Whether the policy has disabled it, since it was not used. */
  readonly disabledByPolicy: boolean;
  /** Its grants that cannot be made here: they allow nothing. */
  readonly unknownGrants: Grant[];
  /** The rotation under way. */
  readonly rotation: Omit<Rotation, 'grace'> | null;
  readonly usage: UsageTotals;
}

/** What a key above another one takes away from it. */
export interface KeyLimit extends Omit<AncestorLimit, 'ancestor'> {
  /** The name is null if it may not be read. */
  readonly ancestor: { readonly id: string; readonly name: string | null };
}

/** A key with all that it may do. */
export interface KeyWithAccess extends KeyState {
  readonly effectivePermissions: Permission[];
  /** The nearest first. */
  readonly limitedBy: KeyLimit[];
  /** What it did to others, and is in force. */
  readonly issued: readonly NamedIssue[];
}

/** A page of keys, oldest first. */
export interface KeyPage {
  readonly keys: KeyState[];
  readonly hasNextPage: boolean;
}

/** Whether a key may do something, and why. */
export interface KeyDecision extends Omit<AccessDecision, 'deniedBy'> {
  readonly permission: Permission;
  /** The nearest ancestor that forbids it. */
  readonly deniedBy: { readonly id: string; readonly name: string | null } | null;
}

/** What names a key. */
export type KeyName = Pick<ApiKey, 'id' | 'name'>;

/** Something that a key did to another one, and that is in force. */
export type NamedIssue = Omit<Issued, 'apiKey'> & {
  /** Whether the other key is disabled already. */
  readonly isDisabled: boolean;
};

/** What was deleted, the named keys first, and what is in force of what these did to others. */
export interface Deleted {
  readonly keys: readonly KeyName[];
  readonly issued: readonly NamedIssue[];
}

/** What containing a key does. */
export interface Contained {
  readonly apiKey: KeyName;
  /** Whether the key is still there. */
  readonly exists: boolean;
  readonly issued: readonly NamedIssue[];
  /** The keys that change, the contained one first. */
  readonly changes: readonly PlannedChange[];
  /** The requests of applications that get no key, with the name that it was to have. */
  readonly requests: readonly { readonly id: string; readonly client: string; readonly keyName: string }[];
}

/** Which key is contained: by its name or id, and from when on what it did counts, as in `AuditRequest`. */
export interface ContainRequest {
  readonly key: string;
  readonly since?: string | undefined;
}

/** A key that was just created. */
export interface Created {
  readonly key: string;
  readonly apiKey: KeyFields;
  /** What was deleted for it: the key of the same name first. */
  readonly replaced: readonly KeyName[];
  readonly confusable: ConfusableName[];
}

/** What a creation would make. */
export type Preview = Omit<KeyPreview, 'replaced'>;

/** A key that was changed. */
export interface Changed {
  readonly before: KeyFields;
  readonly after: KeyState;
}

/** A key with a new secret. */
export interface Rotated {
  readonly key: string;
  readonly apiKey: KeyFields;
  /** The rotation; one without a grace is over at once. */
  readonly rotation: Omit<Rotation, 'grace'> | null;
  /** The keys that it had created, as they are afterwards. */
  readonly created: readonly KeyFields[];
  /** Those of them that were disabled by it. */
  readonly disabled: readonly KeyFields[];
  /** What is in force of what it did to others, where those are disabled. */
  readonly issued: readonly NamedIssue[];
}

/** What was applied. */
export interface Applied extends PlannedChanges {
  /** The new keys with their secrets, in the order of their declarations. */
  readonly created: { readonly key: string; readonly apiKey: KeyName }[];
}

/** What an application asks for, as whoever decides sees it. */
export interface ConsentState extends Pick<
  ConsentRequest,
  'id' | 'flow' | 'client' | 'status' | 'roles' | 'permissions' | 'keyExpiresIn' | 'address' | 'createdAt' | 'expiresAt'
> {
  /** The key that it gets. */
  readonly approval: Pick<ConsentApproval, 'keyName' | 'roles' | 'permissions' | 'keyExpiresAt'> | null;
}

/** A request of an application: by the code that it shows, or by its id. */
export type ConsentPlace = { readonly userCode: string } | { readonly requestId: string };

/**
 * What commands do with keys: those of a store, as its operator, or those of a running server, as the key that they
 * send. What is allowed, and what a value means, is decided by the rules, wherever they run. Each operation throws what
 * `KeysService` throws; with a server also KeysError UNAUTHENTICATED, RATE_LIMITED and SERVER_….
 */
export interface KeyAdministration {
  /** The absolute path of the store, its URL without the password, or the address of the server. */
  readonly location: string;
  /** Whether there is a store; otherwise this is an empty one that takes no changes. */
  readonly exists: boolean;
  /** Whether a change whose secrets cannot be delivered is reverted as a whole, and not its new secrets alone. */
  readonly revertsAll: boolean;
  /** How often to look for what is new, in milliseconds. */
  readonly pollMs: number;
  /** Everything that can be granted. */
  catalog(): Promise<Catalog>;
  find(name: string): Promise<KeyState | undefined>;
  show(name: string): Promise<KeyWithAccess | undefined>;
  list(query: PageQuery): Promise<KeyPage>;
  /** The same name with those that it looks like, if a key of that name would be new and is not refused for it. */
  findConfusableNames(name: string): Promise<ConfusableName[]>;
  preview(input: NewKey): Promise<Preview>;
  /** With a `delivery`, a secret that cannot be delivered leaves no new key. */
  create(input: NewKey, delivery?: SecretDelivery<Created>): Promise<Created>;
  update(key: KeyFields, change: KeyChange): Promise<Changed & { confusable: ConfusableName[] }>;
  /** @returns what a key that is disabled did to others, too */
  setEnabled(key: KeyFields, enabled: boolean): Promise<Changed & Pick<Deleted, 'issued'>>;
  /** A secret that cannot be delivered leaves the previous one. */
  rotate(key: KeyFields, request: RotationRequest, delivery: SecretDelivery<Rotated>): Promise<Rotated>;
  finishRotation(id: string): Promise<KeyState>;
  rollBackRotation(id: string): Promise<KeyState>;
  delete(ids: readonly string[]): Promise<Deleted>;
  planContainment(request: ContainRequest): Promise<Contained>;
  /** Undoes what is in force by then, also where that is more than was planned. */
  contain(request: ContainRequest): Promise<Contained>;
  /** @param permission as the user wrote it */
  decide(key: KeyFields, permission: string): Promise<KeyDecision>;
  suggest(key: KeyFields): Promise<Suggestion>;
  /** How its requests ended, by hours or days. */
  usageOf(key: KeyFields, request: UsageRequest): Promise<UsageByPeriod>;
  plan(declared: readonly DeclaredKey[], rules: ApplyRules): Promise<PlannedChanges>;
  /** With a server, `prepare` is called before anything is changed, too: with the names of new keys alone. */
  apply(declared: readonly DeclaredKey[], rules: ApplyRules, delivery: SecretDelivery<Applied>): Promise<Applied>;
  /** The name of the key for which a secret still works, or may do so again; undefined where that cannot be told. */
  nameOfWorking?(secret: string): Promise<string | undefined>;
  /** What applications ask for, and have not got yet, oldest first. */
  consentRequests(limit: number): Promise<ConsentState[]>;
  /** What was asked for, whatever was decided. */
  consentRequest(place: ConsentPlace): Promise<ConsentState>;
  approveConsentRequest(userCode: string, choice: ConsentChoice): Promise<ConsentState>;
  denyConsentRequest(place: ConsentPlace): Promise<ConsentState>;
  /** Newest first; with `after`, oldest first. */
  auditLog(request: AuditRequest, place?: { before?: number; after?: number }): Promise<AuditEntry[]>;
  close(): Promise<void>;
}
