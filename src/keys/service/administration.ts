import { type ApplyOperations, operatorDeclarations } from '../transfer/index.ts';
import type { AuditEntry, AuditRequest } from '../audit/index.ts';
import {
  type AccessDecision,
  type AncestorLimit,
  findAnswering,
  OPERATOR,
  readPermission,
  suggestGrants,
  type Suggestion,
} from '../authorization/index.ts';
import { type Budget, KeysError, mapYielding, MAX_PAGE_SIZE, withoutUndefined } from '../basics/index.ts';
import {
  type Attestation,
  type ConfusableName,
  type ContainmentOperations,
  type KeyName,
  type KeyPreview,
  type ManyChangePlan,
  type ManyChangeRequest,
  type UndeletingChange,
  type NamedIssue,
  namedIssues,
  operatorContainments,
  presented,
  type SecretDelivery,
} from '../changes/index.ts';
import { type ConsentOperations, operatorConsents } from '../consent/index.ts';
import {
  type ApiKey,
  type KeyChange,
  type KeyFields,
  type NewKey,
  NO_USAGE,
  type Rotation,
  type RotationRequest,
  type Status,
  type UsageByPeriod,
  type UsageRequest,
  type UsageTotals,
} from '../key/index.ts';
import type { ListedEdge } from '../feed/index.ts';
import { MAX_SELECTED, type SelectedKeys, type SelectionQuery } from '../lists/index.ts';
import { type CreatedKey, formatCursor, type PageQuery, type RotatedKey } from './management.ts';
import { type Catalog, type Grant, type Permission, unknownGrantsOf } from '../permissions/index.ts';
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

export class OperatorKeys implements KeyAdministration {
  readonly location: string;
  readonly exists: boolean;
  readonly revertsAll = true;
  readonly mostAtOnce = MAX_SELECTED;
  readonly pollMs = 250;
  readonly #keys: OpenService;

  constructor(keys: OpenService) {
    this.location = keys.location;
    this.exists = keys.exists;
    this.#keys = keys;
  }

  get consents(): ConsentOperations {
    return operatorConsents(this.#keys.consent);
  }

  get containments(): ContainmentOperations {
    return operatorContainments(this.#keys.containments);
  }

  get declarations(): ApplyOperations {
    return operatorDeclarations(this.#keys);
  }

  async catalog(): Promise<Catalog> {
    return this.#keys.catalog;
  }

  async find(name: string): Promise<KeyState | undefined> {
    const key = await this.#keys.findByName(name, OPERATOR);
    return key && stateOf(this.#keys, key);
  }

  async show(name: string): Promise<KeyWithAccess | undefined> {
    const key = await this.#keys.findByName(name, OPERATOR);
    if (!key) return undefined;
    const [chain] = await this.#keys.chainsOf([key]);
    const effectivePermissions = this.#keys.accessOf(chain!).permissions();
    const [state, issued] = [await stateOf(this.#keys, key), await this.#issuedBy([key.id])];
    return { ...state, effectivePermissions, limitedBy: this.#keys.limitsOf(chain!), issued };
  }

  async list(query: PageQuery): Promise<KeyPage> {
    const { keys, hasNextPage } = await this.#keys.list(withoutUndefined(query), OPERATOR);
    return { keys: await statesOf(this.#keys, keys), hasNextPage };
  }

  async *review(): AsyncGenerator<readonly ReviewedKey[]> {
    for (let after: string | undefined; ;) {
      const { keys, hasNextPage } = await this.#keys.list(
        { first: MAX_PAGE_SIZE, ...(after !== undefined && { after }) },
        OPERATOR,
      );
      const chains = await this.#keys.chainsOf(keys);
      const states = await statesOf(this.#keys, keys);
      yield mapYielding(states.entries(), ([index, state]) => {
        const chain = chains[index]!;
        return {
          ...state,
          effectivePermissions: this.#keys.accessOf(chain).permissions(),
          answering: findAnswering(chain)?.answering ?? null,
          creator: chain.keys[1]?.name ?? null,
        };
      });
      if (!hasNextPage) return;
      after = formatCursor(keys.at(-1)!);
    }
  }

  attest(attestation: Attestation): Promise<void> {
    return this.#keys.attest(attestation, OPERATOR);
  }

  async select(query: SelectionQuery): Promise<SortedKeys> {
    const { keys, ...page } = await this.#keys.lists.select(query, OPERATOR);
    return { keys: await statesOf(this.#keys, keys), ...page };
  }

  findConfusableNames(name: string): Promise<ConfusableName[]> {
    return this.#keys.findConfusableNames(name);
  }

  preview(input: NewKey): Promise<Preview> {
    return this.#keys.preview(withoutUndefined(input), OPERATOR);
  }

  create(input: NewKey, delivery?: SecretDelivery<Created>): Promise<Created> {
    const given: SecretDelivery<CreatedKey> | undefined = delivery;
    return this.#keys.create(withoutUndefined(input), OPERATOR, given);
  }

  async update({ id }: KeyFields, change: KeyChange): Promise<Changed & { confusable: ConfusableName[] }> {
    const { before, after, confusable } = await this.#keys.update(id, withoutUndefined(change), OPERATOR);
    return { before, after: await stateOf(this.#keys, after), confusable };
  }

  async setEnabled({ id }: KeyFields, enabled: boolean): Promise<Changed & Pick<Deleted, 'issued'>> {
    const { before, after } = await this.#keys.setEnabled(id, enabled, OPERATOR);
    const issued = enabled ? [] : await this.#issuedBy([id]);
    return { before, after: await stateOf(this.#keys, after), issued };
  }

  async rotate({ id }: KeyFields, request: RotationRequest, delivery: SecretDelivery<Rotated>): Promise<Rotated> {
    const present = ({ key, after, created, disabled, issued }: RotatedKey): Rotated => {
      return { key, apiKey: after, rotation: after.rotation, created, disabled, issued: namedIssues(issued) };
    };
    return present(await this.#keys.rotate(id, withoutUndefined(request), OPERATOR, presented(delivery, present)));
  }

  planMany(ids: readonly string[], request: ManyChangeRequest): Promise<ManyPlan> {
    return this.#keys.permittedChanges.planOf(ids, givenIn(request), OPERATOR);
  }

  async changeMany(ids: readonly string[], request: UndeletingChange): Promise<readonly KeyName[]> {
    return (await this.#keys.changeAll(ids, givenIn(request), OPERATOR)).map(({ after }) => after);
  }

  async finishRotation(id: string): Promise<KeyState> {
    return stateOf(this.#keys, (await this.#keys.finishRotation(id, OPERATOR)).after);
  }

  async rollBackRotation(id: string): Promise<KeyState> {
    return stateOf(this.#keys, (await this.#keys.rollBackRotation(id, OPERATOR)).after);
  }

  async delete(ids: readonly string[]): Promise<Deleted> {
    return { keys: await this.#keys.delete(ids, OPERATOR), issued: await this.#issuedBy(ids) };
  }

  async decide({ id }: KeyFields, text: string): Promise<KeyDecision> {
    const permission = readPermission(text, this.#keys.catalog);
    return { ...this.#keys.decide(await this.#chainOf(id), permission), permission };
  }

  async suggest({ id }: KeyFields): Promise<Suggestion> {
    const used = await this.#keys.usage.usedPermissionsOf(id);
    return suggestGrants(await this.#chainOf(id), used, this.#keys.catalog);
  }

  usageOf({ id }: KeyFields, request: UsageRequest): Promise<UsageByPeriod> {
    return this.#keys.usage.byPeriod(id, withoutUndefined(request));
  }

  /** One that is expired or disabled may come back; one that a newer secret replaced may not. */
  async findNameOfWorking(secret: string): Promise<string | undefined> {
    const found = await this.#keys.identify(secret, OPERATOR);
    return 'unknown' in found || found.status === 'ROTATED' ? undefined : found.apiKey.name;
  }

  edges(): Promise<ListedEdge[]> {
    return this.#keys.edges.all();
  }

  auditLog(request: AuditRequest, place: { before?: number; after?: number } = {}): Promise<AuditEntry[]> {
    return this.#keys.audit.read(withoutUndefined(request), OPERATOR, withoutUndefined(place));
  }

  close(): Promise<void> {
    return this.#keys.close();
  }

  async #issuedBy(ids: readonly string[]): Promise<NamedIssue[]> {
    return namedIssues(await this.#keys.containments.issuedBy(ids, OPERATOR));
  }

  async #chainOf(id: string) {
    const key = await this.#keys.findById(id, OPERATOR);
    if (!key) throw new KeysError('NOT_FOUND', `There is no API key with the id "${id}".`);
    return (await this.#keys.chainsOf([key]))[0]!;
  }
}

/** A change of many keys with what is given alone. */
function givenIn<Request extends ManyChangeRequest>(request: Request): Request {
  return { ...request, change: request.change && withoutUndefined(request.change) };
}

/** What the rules say of a key now. @throws KeysError STORE_… */
export async function stateOf(keys: KeysService, key: ApiKey): Promise<KeyState> {
  return (await statesOf(keys, [key]))[0]!;
}

async function statesOf(keys: KeysService, page: readonly ApiKey[]): Promise<KeyState[]> {
  const [chains, usage, byPolicy, budgets] = await Promise.all([
    keys.chainsOf(page),
    keys.usage.usageOf(page.map(({ id }) => id)),
    keys.unusedKeys.disabledByPolicy(page),
    keys.budgetsOf(page),
  ]);
  return chains.map((chain) => {
    const [key] = chain.keys;
    return {
      apiKey: key,
      status: keys.statusOf(chain),
      disabledByPolicy: byPolicy.has(key.id),
      unknownGrants: unknownGrantsOf(key, keys.catalog),
      rotation: keys.rotationOf(key),
      usage: usage.get(key.id) ?? NO_USAGE,
      budgets: budgets.get(key.id)!,
    };
  });
}
