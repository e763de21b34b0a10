import type { AccessDecision, AncestorLimit } from '../authorization/index.ts';
import type { Budget } from '../basics/index.ts';
import type { ConfusableName, KeyName, KeyPreview, ManyChangePlan, NamedIssue } from '../changes/index.ts';
import type { KeyFields, Rotation, Status, UsageTotals } from '../key/index.ts';
import type { SelectedKeys } from '../lists/index.ts';
import type { Grant, Permission } from '../permissions/index.ts';
import type { KeysService } from './service.ts';

export type { KeyName, NamedIssue } from '../changes/index.ts';

/** A key, and what the rules say of it now. */
export interface KeyState {
  readonly apiKey: KeyFields;
  /** Counts its ancestors. */
  readonly status: Status;
  /** True if the policy has disabled it, since it was not used. */
  readonly disabledByPolicy: boolean;
  /** Its grants that cannot be made here: they allow nothing. */
  readonly unknownGrants: Grant[];
  /** The rotation under way. */
  readonly rotation: Omit<Rotation, 'grace'> | null;
  readonly usage: UsageTotals;
  /** The rest of its budgets. */
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
  /** Its effects on other keys that are in force. */
  readonly issued: readonly NamedIssue[];
}

/** A page of keys, oldest first. */
export interface KeyPage {
  readonly keys: KeyState[];
  readonly hasNextPage: boolean;
}

/** A key, as it is reviewed. */
export interface ReviewedKey extends Pick<KeyWithAccess, 'effectivePermissions'>, KeyState {
  /** The owner of the key, or of the nearest key above it; null if there is none. */
  readonly answering: string | null;
  /** The name of the key that created it; null if none did, or it may not be read. */
  readonly creator: string | null;
}

/** Some keys of a selection, in the order that was asked for. */
export interface SortedKeys extends Omit<SelectedKeys, 'keys'> {
  readonly keys: KeyState[];
}

/** A decision on what a key can do, with its reason. */
export interface KeyDecision extends Omit<AccessDecision, 'deniedBy'> {
  readonly permission: Permission;
  /** The nearest ancestor that forbids it. */
  readonly deniedBy: { readonly id: string; readonly name: string | null } | null;
}

/** The deleted keys, the named ones first, and their effects on other keys that are in force. */
export interface Deleted {
  readonly keys: readonly KeyName[];
  readonly issued: readonly NamedIssue[];
}

export interface Created {
  readonly key: string;
  readonly apiKey: KeyFields;
  /** The keys that were deleted for it: the one of the same name first. */
  readonly replaced: readonly KeyName[];
  readonly confusable: ConfusableName[];
}

/** A preview of a creation. */
export type Preview = Omit<KeyPreview, 'replaced'>;

/** A key that was changed. */
export interface Changed {
  /** The key before, where the transaction has it; a server does not say. */
  readonly before?: KeyFields;
  readonly after: KeyState;
}

/** A preview of a change of many keys. */
export type ManyPlan = ManyChangePlan<KeyName>;

/** A key with a new secret. */
export interface Rotated {
  readonly key: string;
  readonly apiKey: KeyFields;
  /** The rotation; one without a grace is over at once. */
  readonly rotation: Omit<Rotation, 'grace'> | null;
  readonly created: readonly KeyFields[];
  readonly disabled: readonly KeyFields[];
  /** Its effects on other keys that are in force, where those are disabled. */
  readonly issued: readonly NamedIssue[];
}

export interface OpenService extends KeysService {
  readonly location: string;
  readonly exists: boolean;
  close(): Promise<void>;
}
