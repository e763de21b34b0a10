import type {
  Applied,
  Changed,
  ConsentPlace,
  Contained,
  ContainRequest,
  Created,
  Deleted,
  KeyAdministration,
  KeyDecision,
  KeyPage,
  KeyState,
  KeyWithAccess,
  NamedIssue,
  Preview,
  Rotated,
} from './administration.ts';
import type { AppliedKeys } from './apply/apply.ts';
import { type ApplyRules, type DeclaredKey, type PlannedChanges, plannedChanges } from './apply/declaration.ts';
import type { AuditEntry } from './audit/audit-entry.ts';
import type { AuditRequest } from './audit/audit-log.ts';
import { readPermission } from './authorization/explain.ts';
import { OPERATOR } from './authorization/principal.ts';
import { type Suggestion, suggestGrants } from './authorization/suggest.ts';
import { containedFields, type Containment, type Issued } from './changes/contain.ts';
import type { ConfusableName } from './changes/confusable-names.ts';
import type { ConsentChoice } from './consent/approval.ts';
import type { SecretDelivery } from './changes/delivery.ts';
import { KeysError } from './errors.ts';
import type { ApiKey, KeyChange, KeyFields, NewKey } from './key/api-key.ts';
import type { RotationRequest } from './key/rotation.ts';
import { NO_USAGE } from './key/usage.ts';
import type { PageQuery } from './list.ts';
import { withoutUndefined } from './options.ts';
import type { CreatedKey, RotatedKey } from './management.ts';
import type { ConsentRequest } from './requests/consent-request.ts';
import type { UsageByPeriod } from './usage/periods.ts';
import type { UsageRequest } from './usage/usage-request.ts';
import { type Catalog, unknownGrantsOf } from './permissions/catalog.ts';
import type { KeysService } from './service.ts';

/** Where the operator tries codes. */
const TERMINAL = 'terminal';

/** The service of an open store. */
export interface OpenService extends KeysService {
  readonly location: string;
  readonly exists: boolean;
  close(): Promise<void>;
}

/** What the operator does with the keys of a store. */
export class OperatorKeys implements KeyAdministration {
  readonly revertsAll = true;
  readonly pollMs = 250;
  readonly #keys: OpenService;

  constructor(keys: OpenService) {
    this.#keys = keys;
  }

  get location(): string {
    return this.#keys.location;
  }

  get exists(): boolean {
    return this.#keys.exists;
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

  async finishRotation(id: string): Promise<KeyState> {
    return stateOf(this.#keys, (await this.#keys.finishRotation(id, OPERATOR)).after);
  }

  async rollBackRotation(id: string): Promise<KeyState> {
    return stateOf(this.#keys, (await this.#keys.rollBackRotation(id, OPERATOR)).after);
  }

  async delete(ids: readonly string[]): Promise<Deleted> {
    return { keys: await this.#keys.delete(ids, OPERATOR), issued: await this.#issuedBy(ids) };
  }

  async planContainment({ key, since }: ContainRequest): Promise<Contained> {
    return containedAs(await this.#keys.planContainment(key, since, OPERATOR));
  }

  async contain({ key, since }: ContainRequest): Promise<Contained> {
    return containedAs(await this.#keys.contain(key, since, OPERATOR));
  }

  async decide({ id }: KeyFields, text: string): Promise<KeyDecision> {
    const permission = readPermission(text, this.#keys.catalog);
    return { ...this.#keys.decide(await this.#chainOf(id), permission), permission };
  }

  async suggest({ id }: KeyFields): Promise<Suggestion> {
    const used = await this.#keys.usedPermissionsOf(id);
    return suggestGrants(await this.#chainOf(id), used.keys(), this.#keys.catalog);
  }

  usageOf({ id }: KeyFields, request: UsageRequest): Promise<UsageByPeriod> {
    return this.#keys.periodUsageOf(id, withoutUndefined(request));
  }

  async plan(declared: readonly DeclaredKey[], rules: ApplyRules): Promise<PlannedChanges> {
    return plannedChanges(await this.#keys.plan(declared, withoutUndefined(rules), OPERATOR));
  }

  async apply(
    declared: readonly DeclaredKey[],
    rules: ApplyRules,
    delivery: SecretDelivery<Applied>,
  ): Promise<Applied> {
    const present = ({ plan, created }: AppliedKeys): Applied => {
      const keys = created.map(({ apiKey }) => apiKey);
      return { ...plannedChanges(plan, keys), created };
    };
    const options = { ...withoutUndefined(rules), delivery: presented(delivery, present) };
    return present(await this.#keys.apply(declared, options, OPERATOR));
  }

  /** One that is expired or disabled may come back; one that a newer secret replaced may not. */
  async nameOfWorking(secret: string): Promise<string | undefined> {
    const found = await this.#keys.identify(secret, OPERATOR);
    return 'unknown' in found || found.status === 'ROTATED' ? undefined : found.apiKey.name;
  }

  auditLog(request: AuditRequest, place: { before?: number; after?: number } = {}): Promise<AuditEntry[]> {
    return this.#keys.auditLog(withoutUndefined(request), OPERATOR, withoutUndefined(place));
  }

  consentRequests(limit: number): Promise<ConsentRequest[]> {
    return this.#keys.consent.list(limit, OPERATOR);
  }

  consentRequest(place: ConsentPlace): Promise<ConsentRequest> {
    const { consent } = this.#keys;
    if ('requestId' in place) return consent.findListed(place.requestId, OPERATOR);
    return consent.find({ ...place, by: { source: TERMINAL } });
  }

  async approveConsentRequest(userCode: string, choice: ConsentChoice): Promise<ConsentRequest> {
    const found = await this.consentRequest({ userCode });
    return (await this.#keys.consent.approve(found, withoutUndefined(choice), OPERATOR)).request;
  }

  async denyConsentRequest(place: ConsentPlace): Promise<ConsentRequest> {
    return this.#keys.consent.deny(await this.consentRequest(place), OPERATOR);
  }

  close(): Promise<void> {
    return this.#keys.close();
  }

  async #issuedBy(ids: readonly string[]): Promise<NamedIssue[]> {
    return namedIssues(await this.#keys.issuedBy(ids, OPERATOR));
  }

  async #chainOf(id: string) {
    const key = await this.#keys.findById(id, OPERATOR);
    if (!key) throw new KeysError('NOT_FOUND', `There is no API key with the id "${id}".`);
    return (await this.#keys.chainsOf([key]))[0]!;
  }
}

/** What a key did to others, by the names of these. */
function namedIssues(issued: readonly Issued[]): NamedIssue[] {
  return issued.map(({ name, apiKey, what, at }) => ({ name, what, at, isDisabled: apiKey?.disabledAt != null }));
}

/** What containing a key does, as it is shown. */
export function containedAs({ contained, exists, issued, changes, requests }: Containment): Contained {
  return {
    apiKey: contained,
    exists,
    issued: namedIssues(issued),
    changes: changes.map((change) => {
      const { id, name } = change.before;
      return { action: 'UPDATE', name, id, changes: containedFields(change) };
    }),
    requests: requests.map(({ id, client, approval }) => ({ id, client: client.name, keyName: approval!.keyName })),
  };
}

/** What the rules say of a key now. @throws KeysError STORE_… */
export async function stateOf(keys: KeysService, key: ApiKey): Promise<KeyState> {
  return (await statesOf(keys, [key]))[0]!;
}

async function statesOf(keys: KeysService, page: readonly ApiKey[]): Promise<KeyState[]> {
  const [chains, usage, byPolicy] = await Promise.all([
    keys.chainsOf(page),
    keys.usageOf(page.map(({ id }) => id)),
    keys.disabledByPolicy(page),
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
    };
  });
}

/** A delivery of what is made of a change. */
function presented<Change, Shown>(
  { prepare, deliver }: SecretDelivery<Shown>,
  present: (change: Change) => Shown,
): SecretDelivery<Change> {
  return {
    prepare: (change) => prepare?.(present(change)),
    deliver: (change) => deliver(present(change)),
  };
}
