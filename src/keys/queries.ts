import type { ApiKey } from './key/api-key.ts';
import type { AuditEntry } from './audit/audit-entry.ts';
import { matchesAuditKey } from './audit/audit-key.ts';
import { AUDIT_OPTIONS, type AuditRequest, readAuditRequest } from './audit/audit-log.ts';
import { compareKeys, type KeyComparison } from './audit/compare.ts';
import { findPrunable, type PrunedEntries } from './audit/prune.ts';
import { type AuditVerification, readAuditHead, verifyAuditLog } from './audit/verify.ts';
import type { ProgressReport } from './progress.ts';
import type { Catalog, Permission } from './permissions/catalog.ts';
import { checkDeclared, type DeclaredKey } from './apply/declaration.ts';
import { type ExportedPage, exportKeys, type ExportOptions } from './transfer/export.ts';
import { type Identification, identify } from './authentication/authenticator.ts';
import { type ConfusableName, findConfusableNames } from './changes/confusable-names.ts';
import { findIssued, type Issued } from './changes/contain.ts';
import { listKeys, type Page, type PageQuery } from './list.ts';
import { normalizeName } from './key/name.ts';
import { type Plan, planChanges } from './apply/plan.ts';
import {
  type AncestorLimit,
  type Chain,
  chainAccess,
  chainStatus,
  findChains,
  limitsOf,
} from './authorization/chain.ts';
import { type Descendants, findDescendants } from './authorization/descendants.ts';
import type { PermissionSet } from './permissions/permission-set.ts';
import { auditOwner, redactEntries } from './authorization/audit-access.ts';
import { type AccessDecision, decideAccess } from './authorization/explain.ts';
import { type Actor, mayFor, OPERATOR, requirePermission } from './authorization/principal.ts';
import type { KeyRepository } from './repository.ts';
import { isInProgress, type Rotation } from './key/rotation.ts';
import type { Status } from './key/status.ts';
import { amount, checkOptions, required, yesOrNo } from './options.ts';
import { checkSearchText } from './text.ts';
import type { UsageTotals, UsedGrant } from './key/usage.ts';
import { requirePastTime } from './time.ts';
import type { UsageByPeriod } from './usage/periods.ts';
import { readUsageRequest, USAGE_OPTIONS, type UsageRequest } from './usage/usage-request.ts';

/** What the questions about keys need from outside. */
export interface QueriesOptions {
  repository: KeyRepository;
  catalog: Catalog;
  /** Milliseconds since 1970. */
  clock: () => number;
}

/** The rules for reading keys, and what is known of them. */
export class KeyQueries {
  readonly catalog: Catalog;
  readonly #options: QueriesOptions;

  constructor(options: QueriesOptions) {
    this.catalog = options.catalog;
    this.#options = options;
  }

  /**
   * All keys page by page, for the operator, as they can be imported again.
   * @throws KeysError OPTION_INVALID, STORE_…
   */
  exportKeys(options: ExportOptions): AsyncGenerator<ExportedPage> {
    checkOptions<ExportOptions>('keys.exportKeys', options, { withDigests: required(yesOrNo) });
    return exportKeys(this.#options.repository, options, this.#options.clock());
  }

  /**
   * What `apply` would change now; nothing is written.
   * @throws DeclarationError; KeysError OPTION_INVALID, PRUNE_REFUSED; ForbiddenError; a STORE_ error
   */
  async plan(
    declared: readonly DeclaredKey[],
    options: { prune?: boolean; adopt?: boolean },
    actor: Actor,
  ): Promise<Plan> {
    checkOptions<typeof options>('keys.plan', options, { prune: yesOrNo, adopt: yesOrNo });
    const { prune = false, adopt = false } = options;
    return this.planChecked(this.checkDeclared('keys.plan', declared), { prune, adopt }, actor);
  }

  /** See `checkDeclared`. */
  protected checkDeclared(caller: string, declared: readonly DeclaredKey[]): DeclaredKey[] {
    return checkDeclared(caller, declared, { catalog: this.catalog, now: this.#options.clock() });
  }

  /** The same as `plan` for what was checked. */
  protected planChecked(
    declared: readonly DeclaredKey[],
    rules: { prune: boolean; adopt: boolean },
    caller: Actor,
  ): Promise<Plan> {
    const { repository, clock } = this.#options;
    const { auditLog } = repository;
    return planChanges(repository, declared, { ...rules, caller, catalog: this.catalog, now: clock(), auditLog });
  }

  /** Finds out whose secret this is, whatever the key's status, which counts as no use. @throws KeysError STORE_… */
  identify(secret: string, actor: Actor): Promise<Identification> {
    return identify(secret, this.#options.repository, actor, this.#options.clock());
  }

  /** See `listKeys`. */
  list(query: PageQuery, actor: Actor): Promise<Page> {
    return listKeys(this.#options.repository, query, actor, { catalog: this.catalog, now: this.#options.clock() });
  }

  /** The chains of keys, in their order: each key with its ancestors. @throws KeysError STORE_… */
  chainsOf(keys: readonly ApiKey[]): Promise<Chain[]> {
    return findChains(this.#options.repository, keys);
  }

  /** The keys that a key created, and so on: at most 500. @throws KeysError INPUT_INVALID, STORE_… */
  descendantsOf(id: string, first: number): Promise<Descendants> {
    return findDescendants(this.#options.repository, id, first);
  }

  /**
   * What keys did to others and is in force, oldest first: also what was done by those beneath them, and with secrets
   * that they issued; as far as the actor may read the others. The keys may be gone.
   * @param since in milliseconds since 1970
   * @throws KeysError STORE_…
   */
  async issuedBy(ids: readonly string[], actor: Actor, since = 0): Promise<Issued[]> {
    const { repository, clock } = this.#options;
    const { effects, consents } = repository;
    const place = { caller: actor, catalog: this.catalog, now: clock(), find: repository, effects, consents };
    return findIssued(place, ids, since);
  }

  /** The status of a key now, which counts its ancestors. */
  statusOf(chain: Chain): Status {
    return chainStatus(chain, this.#options.clock());
  }

  /** What a key may do: what its grants say, met with what its ancestors may do. */
  accessOf(chain: Chain): PermissionSet {
    return chainAccess(chain, this.catalog);
  }

  /** Whether a key may do something now, and why. */
  decide(chain: Chain, permission: Permission): AccessDecision {
    return decideAccess(chain, permission, this.catalog, this.#options.clock());
  }

  /** What the ancestors of a key take away from it now. */
  limitsOf(chain: Chain): AncestorLimit[] {
    return limitsOf(chain, this.catalog, this.#options.clock());
  }

  /** The rotation of a key while its previous secret still works. */
  rotationOf({ rotation }: ApiKey): Rotation | null {
    return isInProgress(rotation, this.#options.clock()) ? rotation : null;
  }

  /** The ids of those of these keys that the policy has disabled, since they were not used. */
  disabledByPolicy(keys: readonly ApiKey[]): Promise<Set<string>> {
    const disabled = keys.filter(({ disabledAt }) => disabledAt !== null);
    return disabled.length === 0 ? Promise.resolve(new Set()) : this.#options.repository.findDisabledByPolicy(disabled);
  }

  /** How much keys were used, by their ids; those that never were are left out. */
  usageOf(ids: readonly string[]): Promise<Map<string, UsageTotals>> {
    return this.#options.repository.findUsage(ids);
  }

  /**
   * How the requests of a key ended, by hours or days in UTC; those without a request are left out.
   * @throws KeysError INPUT_INVALID, STORE_…
   */
  async periodUsageOf(id: string, request: UsageRequest = {}): Promise<UsageByPeriod> {
    checkOptions('keys.periodUsageOf', request, USAGE_OPTIONS);
    const { repository, clock } = this.#options;
    const range = readUsageRequest(request, clock());
    return { ...range, periods: await repository.findPeriodUsage(id, range) };
  }

  /**
   * The permissions that a key has used, and the roles that it has granted, with the time of the last use of each, in
   * milliseconds since 1970.
   */
  async usedPermissionsOf(id: string): Promise<Map<UsedGrant, number>> {
    return (await this.usedPermissionsOfAll([id])).get(id)!;
  }

  /** The same for several keys, by their ids. */
  usedPermissionsOfAll(ids: readonly string[]): Promise<Map<string, Map<UsedGrant, number>>> {
    return this.#options.repository.findUsedPermissions(ids);
  }

  /**
   * Entries of the audit log, the newest first: all of them for readers of all keys; for others, those about or by keys
   * that they may read, and those that concern no key.
   * @throws KeysError OPTION_INVALID, INPUT_INVALID; ForbiddenError; a STORE_ error
   */
  async auditLog(
    request: AuditRequest,
    actor: Actor,
    place: { before?: number; after?: number } = {},
  ): Promise<AuditEntry[]> {
    checkOptions('keys.auditLog', request, AUDIT_OPTIONS);
    checkOptions<typeof place>('keys.auditLog', place, { before: amount, after: amount });
    if (actor !== OPERATOR) requirePermission(actor, 'LOGS', 'READ_ANY');
    const query = readAuditRequest(request, this.#options.clock());
    const order = place.after === undefined ? 'newest' : 'oldest';
    const { repository } = this.#options;
    const owner = auditOwner(actor);
    const entries = await repository.auditLog.find({ ...query, ...place, order, owner });
    return owner === undefined ? entries : redactEntries(entries, actor, repository);
  }

  /**
   * Goes through the whole audit log, and tells whether it is as it was written.
   * @param head the newest entry at an earlier time, as `<number>:<hash>`, which the log must still have
   * @throws KeysError INPUT_INVALID, STORE_…
   */
  async verifyAuditLog(head?: string, onProgress?: ProgressReport): Promise<AuditVerification> {
    const known = head === undefined ? undefined : readAuditHead(head);
    return verifyAuditLog(this.#options.repository.auditLog, known, onProgress);
  }

  /**
   * Whether the newest entry of the audit log was made with the key at hand; true in a log without a key.
   * @throws KeysError STORE_AUDIT_KEY if the log has a key and there is none at hand; other STORE_ codes
   */
  matchesAuditKey(): Promise<boolean> {
    return matchesAuditKey(this.#options.repository.auditLog);
  }

  /** Compares all keys with what the audit log says of them. @throws KeysError STORE_… */
  compareWithAuditLog(onProgress?: ProgressReport): Promise<KeyComparison> {
    const { repository } = this.#options;
    return compareKeys(repository.auditLog, repository, onProgress);
  }

  /**
   * The entries of the audit log that were written before a time, written as in `AuditRequest`; undefined if there are
   * none.
   * @throws KeysError INPUT_INVALID, STORE_…
   */
  async findPrunableAudit(before: string): Promise<PrunedEntries | undefined> {
    return findPrunable(this.#options.repository.auditLog, requirePastTime(before, this.#options.clock()));
  }

  /** Resolves when the store answers. @throws KeysError with a STORE_ code */
  checkStore(): Promise<void> {
    return this.#options.repository.check();
  }

  /** A key by its id, if there is one that the actor may read. */
  async findById(id: string, actor: Actor): Promise<ApiKey | undefined> {
    checkSearchText(id);
    return readable(await this.#options.repository.findById(id), actor);
  }

  /** The same name with those that it looks like, if a key of that name would be new; for the operator. */
  findConfusableNames(name: string): Promise<ConfusableName[]> {
    return findConfusableNames(OPERATOR, this.#options.repository, [normalizeName(name)]);
  }

  /** A key by its name, if there is one that the actor may read. */
  async findByName(name: string, actor: Actor): Promise<ApiKey | undefined> {
    checkSearchText(name);
    return readable(await this.#options.repository.findByName(normalizeName(name)), actor);
  }
}

function readable(key: ApiKey | undefined, actor: Actor): ApiKey | undefined {
  return key && mayFor(actor, 'READ', key) ? key : undefined;
}
