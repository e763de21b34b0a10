import type { ApplyOperations } from './apply/declarations.ts';
import type { AuditEntry } from './audit/audit-entry.ts';
import type { AuditRequest } from './audit/audit-log.ts';
import type { AncestorLimit } from './authorization/chain.ts';
import type { AccessDecision } from './authorization/explain.ts';
import type { Suggestion } from './authorization/suggest.ts';
import type { ContainmentOperations, KeyName, NamedIssue } from './changes/operator-containments.ts';
import type { ConfusableName } from './changes/confusable-names.ts';
import type { KeyPreview } from './changes/create.ts';
import type { SecretDelivery } from './changes/delivery.ts';
import type { ConsentOperations } from './consent/operator-consents.ts';
import type { KeyChange, KeyFields, NewKey } from './key/api-key.ts';
import type { Rotation, RotationRequest } from './key/rotation.ts';
import type { Status } from './key/status.ts';
import type { UsageTotals } from './key/usage.ts';
import type { PageQuery } from './list.ts';
import type { Catalog, Grant, Permission } from './permissions/catalog.ts';
import type { UsageByPeriod } from './usage/periods.ts';
import type { UsageRequest } from './usage/usage-request.ts';

export type { Applied } from './apply/declarations.ts';
export type { Contained, KeyName, NamedIssue } from './changes/operator-containments.ts';
export type { ConsentPlace, ConsentState } from './consent/operator-consents.ts';

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

/** What a parent key takes away from a key. */
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

/** What was deleted, the named keys first, and what is in force of what these did to others. */
export interface Deleted {
  readonly keys: readonly KeyName[];
  readonly issued: readonly NamedIssue[];
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

/** What commands do with keys one by one, and what they learn of them. */
export interface KeyOperations {
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
  /** @param permission as the user wrote it */
  decide(key: KeyFields, permission: string): Promise<KeyDecision>;
  suggest(key: KeyFields): Promise<Suggestion>;
  /** How its requests ended, by hours or days. */
  usageOf(key: KeyFields, request: UsageRequest): Promise<UsageByPeriod>;
  /** The name of the key for which a secret still works, or may do so again; undefined where that cannot be told. */
  findNameOfWorking?(secret: string): Promise<string | undefined>;
  /** Newest first; with `after`, oldest first. */
  auditLog(request: AuditRequest, place?: { before?: number; after?: number }): Promise<AuditEntry[]>;
  close(): Promise<void>;
}

/**
 * What commands do with keys: those of a store, as its operator, or those of a running server, as the key that they
 * send. What is allowed, and what a value means, is decided by the rules, wherever they run. Each operation throws what
 * `KeysService` throws; with a server also KeysError UNAUTHENTICATED, RATE_LIMITED and SERVER_….
 */
export interface KeyAdministration extends KeyOperations, ApplyOperations, ConsentOperations, ContainmentOperations {}
