import type { ApplyOperations } from '../transfer/index.ts';
import type { AuditEntry, AuditRequest } from '../audit/index.ts';
import type { AccessDecision, AncestorLimit, Suggestion } from '../authorization/index.ts';
import type { Budget } from '../basics/index.ts';
import type {
  Attestation,
  ConfusableName,
  ContainmentOperations,
  KeyName,
  KeyPreview,
  ManyChangePlan,
  ManyChangeRequest,
  UndeletingChange,
  NamedIssue,
  SecretDelivery,
} from '../changes/index.ts';
import type { ConsentOperations } from '../consent/index.ts';
import type {
  KeyChange,
  KeyFields,
  NewKey,
  Rotation,
  RotationRequest,
  Status,
  UsageByPeriod,
  UsageRequest,
  UsageTotals,
} from '../key/index.ts';
import type { ListedEdge } from '../feed/index.ts';
import type { SelectedKeys, SelectionQuery } from '../lists/index.ts';
import type { PageQuery } from './management.ts';
import type { Catalog, Grant, Permission } from '../permissions/index.ts';
import type { KeysService } from './service.ts';

export type { Applied } from '../transfer/index.ts';
export type { Contained, KeyName, NamedIssue } from '../changes/index.ts';
export type { ConsentPlace, ConsentState } from '../consent/index.ts';

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
  /** What is left of its budgets. */
  readonly budgets: readonly Budget[];
}

export interface KeyLimit extends Omit<AncestorLimit, 'ancestor'> {
  /** The name is null if it may not be read. */
  readonly ancestor: { readonly id: string; readonly name: string | null };
}

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

/** A key, as it is reviewed. */
export interface ReviewedKey extends Pick<KeyWithAccess, 'effectivePermissions'>, KeyState {
  /** Who answers for it; null if nobody is known. */
  readonly answering: string | null;
  /** The name of the key that created it; null if none did, or it may not be read. */
  readonly creator: string | null;
}

/** Some keys of a selection, in the order that was asked for. */
export interface SortedKeys extends Omit<SelectedKeys, 'keys'> {
  readonly keys: KeyState[];
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

export interface Created {
  readonly key: string;
  readonly apiKey: KeyFields;
  /** What was deleted for it: the key of the same name first. */
  readonly replaced: readonly KeyName[];
  readonly confusable: ConfusableName[];
}

/** What a creation would make. */
export type Preview = Omit<KeyPreview, 'replaced'>;

export interface Changed {
  readonly before: KeyFields;
  readonly after: KeyState;
}

/** What a change of many keys would do. */
export type ManyPlan = ManyChangePlan<KeyName>;

/** A key with a new secret. */
export interface Rotated {
  readonly key: string;
  readonly apiKey: KeyFields;
  /** The rotation; one without a grace is over at once. */
  readonly rotation: Omit<Rotation, 'grace'> | null;
  readonly created: readonly KeyFields[];
  readonly disabled: readonly KeyFields[];
  /** What is in force of what it did to others, where those are disabled. */
  readonly issued: readonly NamedIssue[];
}

/**
 * What commands do with keys: those of a store, as its operator, or those of a running server, as the key that they
 * send. What is allowed, and what a value means, is decided by the rules, wherever they run. Each operation throws what
 * `KeysService` throws; with a server also KeysError UNAUTHENTICATED, RATE_LIMITED and SERVER_….
 */
export interface KeyAdministration {
  /** What is done about applications that ask for keys. */
  readonly consents: ConsentOperations;
  /** Undoes what keys did to others. */
  readonly containments: ContainmentOperations;
  /** Brings keys to what is declared. */
  readonly declarations: ApplyOperations;
  /** The absolute path of the store, its URL without the password, or the address of the server. */
  readonly location: string;
  /** Whether there is a store; otherwise this is an empty one that takes no changes. */
  readonly exists: boolean;
  /** Whether a change whose secrets cannot be delivered is reverted as a whole, and not its new secrets alone. */
  readonly revertsAll: boolean;
  /** How many keys are changed at once, at most. */
  readonly mostAtOnce: number;
  /** How often to look for what is new, in milliseconds. */
  readonly pollMs: number;
  /** Everything that can be granted. */
  catalog(): Promise<Catalog>;
  find(name: string): Promise<KeyState | undefined>;
  show(name: string): Promise<KeyWithAccess | undefined>;
  list(query: PageQuery): Promise<KeyPage>;
  /** All keys, page by page, oldest first, as they are reviewed. */
  review(): AsyncGenerator<readonly ReviewedKey[]>;
  /** Records in the audit log who attests a review. */
  attest(attestation: Attestation): Promise<void>;
  /** Keys in another order. */
  select(query: SelectionQuery): Promise<SortedKeys>;
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
  /** What a change of many keys would do. Nothing is written. */
  planMany(ids: readonly string[], request: ManyChangeRequest): Promise<ManyPlan>;
  /** Changes keys, but for deleting them: all of them, or none. @returns those that were changed */
  changeMany(ids: readonly string[], request: UndeletingChange): Promise<readonly KeyName[]>;
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
  /** The servers without a store that follow this one, by their names. */
  edges(): Promise<ListedEdge[]>;
  /** Newest first; with `after`, oldest first. */
  auditLog(request: AuditRequest, place?: { before?: number; after?: number }): Promise<AuditEntry[]>;
  close(): Promise<void>;
}

export interface OpenService extends KeysService {
  readonly location: string;
  readonly exists: boolean;
  close(): Promise<void>;
}
