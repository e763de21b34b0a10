import type {
  Changed,
  Created,
  Deleted,
  KeyAdministration,
  KeyDecision,
  KeyOperations,
  KeyPage,
  KeyState,
  KeyWithAccess,
  NamedIssue,
  Preview,
  Rotated,
} from './administration.ts';
import { OperatorDeclarations } from './apply/declarations.ts';
import type { AuditEntry } from './audit/audit-entry.ts';
import type { AuditRequest } from './audit/audit-log.ts';
import { readPermission } from './authorization/explain.ts';
import { OPERATOR } from './authorization/principal.ts';
import { type Suggestion, suggestGrants } from './authorization/suggest.ts';
import type { ConfusableName } from './changes/confusable-names.ts';
import { presented, type SecretDelivery } from './changes/delivery.ts';
import { namedIssues, OperatorContainments } from './changes/operator-containments.ts';
import { OperatorConsents } from './consent/operator-consents.ts';
import { KeysError } from './errors.ts';
import type { ApiKey, KeyChange, KeyFields, NewKey } from './key/api-key.ts';
import type { RotationRequest } from './key/rotation.ts';
import { NO_USAGE } from './key/usage.ts';
import type { PageQuery } from './list.ts';
import { withoutUndefined } from './options.ts';
import type { CreatedKey, RotatedKey } from './management.ts';
import { methodsOf } from './port.ts';
import type { UsageByPeriod } from './usage/periods.ts';
import type { UsageRequest } from './usage/usage-request.ts';
import { type Catalog, unknownGrantsOf } from './permissions/catalog.ts';
import type { KeysService } from './service.ts';

/** The service of an open store. */
export interface OpenService extends KeysService {
  readonly location: string;
  readonly exists: boolean;
  close(): Promise<void>;
}

/** What the operator does with the keys of a store. */
export function operatorKeys(keys: OpenService): KeyAdministration {
  const features = methodsOf(
    new OperatorConsents(keys),
    new OperatorContainments(keys),
    new OperatorDeclarations(keys),
  );
  return Object.assign(new OperatorKeys(keys), features);
}

class OperatorKeys implements KeyOperations {
  readonly location: string;
  readonly exists: boolean;
  readonly revertsAll = true;
  readonly pollMs = 250;
  readonly #keys: OpenService;

  constructor(keys: OpenService) {
    this.location = keys.location;
    this.exists = keys.exists;
    this.#keys = keys;
  }

  async catalog(): Promise<Catalog> {
    return this.#keys.catalog;
  }

  async find(name: string): Promise<KeyState | undefined> {
    const key = await this.#keys.findByName(name, OPERATOR);
    return key && findKeyState(this.#keys, key);
  }

  async show(name: string): Promise<KeyWithAccess | undefined> {
    const key = await this.#keys.findByName(name, OPERATOR);
    if (!key) return undefined;
    const [chain] = await this.#keys.chainsOf([key]);
    const effectivePermissions = this.#keys.accessOf(chain!).permissions();
    const [state, issued] = [await findKeyState(this.#keys, key), await this.#issuedBy([key.id])];
    return { ...state, effectivePermissions, limitedBy: this.#keys.limitsOf(chain!), issued };
  }

  async list(query: PageQuery): Promise<KeyPage> {
    const { keys, hasNextPage } = await this.#keys.list(withoutUndefined(query), OPERATOR);
    return { keys: await findKeyStates(this.#keys, keys), hasNextPage };
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
    return { before, after: await findKeyState(this.#keys, after), confusable };
  }

  async setEnabled({ id }: KeyFields, enabled: boolean): Promise<Changed & Pick<Deleted, 'issued'>> {
    const { before, after } = await this.#keys.setEnabled(id, enabled, OPERATOR);
    const issued = enabled ? [] : await this.#issuedBy([id]);
    return { before, after: await findKeyState(this.#keys, after), issued };
  }

  async rotate({ id }: KeyFields, request: RotationRequest, delivery: SecretDelivery<Rotated>): Promise<Rotated> {
    const present = ({ key, after, created, disabled, issued }: RotatedKey): Rotated => {
      return { key, apiKey: after, rotation: after.rotation, created, disabled, issued: namedIssues(issued) };
    };
    return present(await this.#keys.rotate(id, withoutUndefined(request), OPERATOR, presented(delivery, present)));
  }

  async finishRotation(id: string): Promise<KeyState> {
    return findKeyState(this.#keys, (await this.#keys.finishRotation(id, OPERATOR)).after);
  }

  async rollBackRotation(id: string): Promise<KeyState> {
    return findKeyState(this.#keys, (await this.#keys.rollBackRotation(id, OPERATOR)).after);
  }

  async delete(ids: readonly string[]): Promise<Deleted> {
    return { keys: await this.#keys.delete(ids, OPERATOR), issued: await this.#issuedBy(ids) };
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

  /** One that is expired or disabled may come back; one that a newer secret replaced may not. */
  async findNameOfWorking(secret: string): Promise<string | undefined> {
    const found = await this.#keys.identify(secret, OPERATOR);
    return 'unknown' in found || found.status === 'ROTATED' ? undefined : found.apiKey.name;
  }

  auditLog(request: AuditRequest, place: { before?: number; after?: number } = {}): Promise<AuditEntry[]> {
    return this.#keys.auditLog(withoutUndefined(request), OPERATOR, withoutUndefined(place));
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

/** What the rules say of a key now. @throws KeysError STORE_… */
export async function findKeyState(keys: KeysService, key: ApiKey): Promise<KeyState> {
  return (await findKeyStates(keys, [key]))[0]!;
}

async function findKeyStates(keys: KeysService, page: readonly ApiKey[]): Promise<KeyState[]> {
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
