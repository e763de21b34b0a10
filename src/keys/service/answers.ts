import type { AccessDecision, AncestorLimit } from '../authorization/index.ts';
import type { Budget } from '../basics/index.ts';
import type { ConfusableName, KeyName, KeyPreview, ManyChangePlan, NamedIssue } from '../changes/index.ts';
import type { KeyFields, Rotation, Status, UseTotals } from '../key/index.ts';
import type { SelectedKeys } from '../lists/index.ts';
import type { Grant, Permission } from '../permissions/index.ts';
import type { KeysService } from './service.ts';

export type { KeyName, NamedIssue } from '../changes/index.ts';

/** A key with its present state by the rules. */
export interface KeyState {
  readonly apiKey: KeyFields;
  /** Counts its ancestors. */
  readonly status: Status;
  /** True if the policy disabled it because it was not used. */
  readonly disabledByPolicy: boolean;
  /** Its grants that are not declared here, which allow nothing. */
  readonly unknownGrants: Grant[];
  /** The rotation in progress. */
  readonly rotation: Omit<Rotation, 'grace'> | null;
  readonly use: UseTotals;
  /** The amounts left in its budgets. */
  readonly budgets: readonly Budget[];
}

export interface KeyLimit extends Omit<AncestorLimit, 'ancestor'> {
  /** The name is null if the caller cannot read that key. */
  readonly ancestor: { readonly id: string; readonly name: string | null };
}

export interface KeyWithAccess extends KeyState {
  readonly effectivePermissions: Permission[];
  /** Nearest first. */
  readonly limitedBy: KeyLimit[];
  /** Its effects on other keys that are still in force. */
  readonly issued: readonly NamedIssue[];
}

/** A page of keys, oldest first. */
export interface KeyPage {
  readonly keys: KeyState[];
  readonly hasNextPage: boolean;
}

/** A page of a selection, in the requested order. */
export interface SortedKeys extends Omit<SelectedKeys, 'keys'> {
  readonly keys: KeyState[];
}

/** A decision about a permission of a key, with its reason. */
export interface KeyDecision extends Omit<AccessDecision, 'deniedBy'> {
  readonly permission: Permission;
  /** The nearest ancestor that does not allow it. */
  readonly deniedBy: { readonly id: string; readonly name: string | null } | null;
}

/** The deleted keys, the named ones first, and their effects on other keys that are still in force. */
export interface Deleted {
  readonly keys: readonly KeyName[];
  readonly issued: readonly NamedIssue[];
}

export interface Created {
  readonly key: string;
  readonly apiKey: KeyFields;
  /** The keys that it replaced: the one of the same name first. */
  readonly replaced: readonly KeyName[];
  readonly confusable: ConfusableName[];
}

/** A preview of a creation. */
export type Preview = Omit<KeyPreview, 'replaced'>;

/** A changed key. */
export interface Changed {
  /** The key before the change, from the transaction; a server does not send it. */
  readonly before?: KeyFields;
  readonly after: KeyState;
}

/** A preview of a change of many keys. */
export type ManyPlan = ManyChangePlan<KeyName>;

/** A key with a new secret. */
export interface Rotated {
  readonly key: string;
  readonly apiKey: KeyFields;
  /** The rotation; without a grace period, it ended at once. */
  readonly rotation: Omit<Rotation, 'grace'> | null;
  readonly created: readonly KeyFields[];
  readonly disabled: readonly KeyFields[];
  /** Its effects on other keys that are still in force, if its child keys are disabled. */
  readonly issued: readonly NamedIssue[];
}

export interface OpenService extends KeysService {
  readonly location: string;
  readonly exists: boolean;
  close(): Promise<void>;
}
