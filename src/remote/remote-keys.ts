import type {
  Applied,
  Changed,
  Contained,
  ContainRequest,
  Created,
  Deleted,
  KeyAdministration,
  KeyState,
  Rotated,
} from '../keys/administration.ts';
import type { ApplyRules, DeclaredKey, PlannedChanges } from '../keys/apply/declaration.ts';
import type { SecretDelivery } from '../keys/changes/delivery.ts';
import { assertValid, isKeysError, KeysError } from '../keys/errors.ts';
import type { KeyChange, KeyFields, NewKey } from '../keys/key/api-key.ts';
import { readRotation, type RotationRequest } from '../keys/key/rotation.ts';
import { validateChange } from '../keys/key/validation.ts';
import { createCatalog } from '../keys/permissions/catalog.ts';
import { formatTime, requirePastTime } from '../keys/time.ts';
import type { Data, ServerConnection } from './connection.ts';
import { APPLY, CONTAIN, CREATE, DELETE, DISABLE, ENABLE, rotationDocument, ROTATE, UPDATE } from './documents.ts';
import { readContained, readPlanned } from './read-changes.ts';
import { readCreated, readIssue, readName, readRotated, readState, secretIn } from './read-key.ts';
import { RemoteConsents } from './remote-consents.ts';
import { changeInput, declaredInput } from './write-key.ts';

/**
 * What commands do with the keys of a running server, over its GraphQL, as the key that they send. The rules run on the
 * server; here, what was typed is brought into the form of the schema.
 */
export class RemoteKeys extends RemoteConsents implements KeyAdministration {
  async create(input: NewKey, delivery?: SecretDelivery<Created>): Promise<Created> {
    const variables = { input: await this.newKey(input) };
    delivery?.begin?.();
    const read = ({ createApiKey }: Data) => readCreated(createApiKey);
    const created = await this.connection.ask({ document: CREATE, variables, read });
    const what = `The secret of the new API key "${created.apiKey.name}"`;
    await deliver(created, delivery, what, async () => void (await this.delete([created.apiKey.id])));
    return created;
  }

  async update(before: KeyFields, change: KeyChange): Promise<Changed & { confusable: [] }> {
    const catalog = (change.roles ?? change.permissions) ? await this.catalog() : createCatalog();
    assertValid(validateChange(change, catalog, Date.now()));
    const variables = { input: { id: before.id, ...changeInput(change, catalog) } };
    const read = ({ updateApiKey }: Data) => readState(updateApiKey);
    return { before, after: await this.connection.ask({ document: UPDATE, variables, read }), confusable: [] };
  }

  async setEnabled(before: KeyFields, enabled: boolean): Promise<Changed & Pick<Deleted, 'issued'>> {
    const read = ({ setApiKeyEnabled: changed }: Data) => {
      return { before, after: readState(changed), issued: enabled ? [] : changed.issued.map(readIssue) };
    };
    const document = enabled ? ENABLE : DISABLE;
    return this.connection.ask({ document, variables: { id: before.id }, read });
  }

  /** The previous secret works at least until the new one was delivered. */
  async rotate(before: KeyFields, request: RotationRequest, delivery: SecretDelivery<Rotated>): Promise<Rotated> {
    const { id, publicId } = before;
    const { issues, activate, disableSince } = readRotation(request, Date.now());
    assertValid(issues);
    const { grace, disableCreated, createdSince } = request;
    const since = createdSince == null || disableSince === null ? undefined : formatTime(disableSince);
    const input = { id, grace, activate: 'ON_FIRST_USE', disableCreated, createdSince: since };
    delivery.begin?.();
    const read = ({ rotateApiKey }: Data) => readRotated(rotateApiKey);
    const rotated = await this.connection.ask({ document: ROTATE, variables: { input }, read });
    // A previous secret changes no keys: where the key has rotated itself, it goes on with the new one.
    const connection = this.connection.isSent(publicId) ? this.connection.withKey(rotated.key) : this.connection;
    await deliver(rotated, delivery, `The new secret of the API key "${before.name}"`, async () => {
      await changeRotation(connection, 'rollBackApiKeyRotation', id);
      for (const key of rotated.disabled) await this.setEnabled(key, true);
    });
    if (activate !== 'NOW') return rotated;
    const { apiKey, rotation } = await changeRotation(connection, 'activateApiKeyRotation', id);
    // One without a grace is over, and is not told any more.
    const { startedAt } = rotated.rotation!;
    return { ...rotated, apiKey, rotation: rotation ?? { ...rotated.rotation!, previousEndsAt: startedAt } };
  }

  finishRotation(id: string): Promise<KeyState> {
    return changeRotation(this.connection, 'finishApiKeyRotation', id);
  }

  rollBackRotation(id: string): Promise<KeyState> {
    return changeRotation(this.connection, 'rollBackApiKeyRotation', id);
  }

  delete(ids: readonly string[]): Promise<Deleted> {
    const read = ({ deleteApiKeys: { keys, issued } }: Data): Deleted => {
      return { keys: keys.map(readName), issued: issued.map(readIssue) };
    };
    return this.connection.ask({ document: DELETE, variables: { ids }, read });
  }

  planContainment(request: ContainRequest): Promise<Contained> {
    return this.#contain(request, true);
  }

  contain(request: ContainRequest): Promise<Contained> {
    return this.#contain(request, false);
  }

  #contain({ key, since }: ContainRequest, dryRun: boolean): Promise<Contained> {
    const from = since === undefined ? undefined : formatTime(requirePastTime(since, Date.now()));
    const variables = { input: { name: key, since: from, dryRun } };
    return this.connection.ask({ document: CONTAIN, variables, read: ({ containKey }) => readContained(containKey) });
  }

  async plan(declared: readonly DeclaredKey[], rules: ApplyRules): Promise<PlannedChanges> {
    return this.#apply(declared, rules, true);
  }

  async apply(
    declared: readonly DeclaredKey[],
    rules: ApplyRules,
    delivery: SecretDelivery<Applied>,
  ): Promise<Applied> {
    const plan = await this.plan(declared, rules);
    if (plan.changes.length === 0) return { ...plan, created: [] };
    const planned = plan.changes.filter(({ action }) => action === 'CREATE');
    delivery.begin?.();
    // What would go wrong with the secrets afterwards goes wrong now, as far as that can be told.
    delivery.prepare?.({ ...plan, created: planned.map(({ name }) => ({ key: '', apiKey: { id: '', name } })) });
    const applied = await this.#apply(declared, rules, false);
    const ids = applied.created.map(({ apiKey }) => apiKey.id);
    await deliver(applied, delivery, 'The secrets of the new API keys', async () => {
      if (ids.length > 0) await this.delete(ids);
    });
    return applied;
  }

  #apply(declared: readonly DeclaredKey[], { prune, adopt }: ApplyRules, dryRun: boolean): Promise<Applied> {
    if (adopt)
      throw new KeysError(
        'STORE_REQUIRED',
        'Only the operator adopts keys. Run it where the store is, or leave it out.',
      );
    const variables = { input: { keys: declared.map(declaredInput), prune, dryRun } };
    const read = ({ applyApiKeys }: Data): Applied => {
      const created = applyApiKeys.created.map(({ key, apiKey }: Data) => ({
        key: secretIn(key),
        apiKey: readName(apiKey),
      })) as Applied['created'];
      // A file gets the name of its key: no other than one of those declared here.
      if (!created.every(({ apiKey }) => declared.some(({ name }) => name === apiKey.name)))
        throw new TypeError('a key that is not declared');
      const ids = created.map(({ apiKey }) => apiKey.id);
      return { ...readPlanned(applyApiKeys, declared, ids), created };
    };
    return this.connection.ask({ document: APPLY, variables, read });
  }
}

function changeRotation(
  connection: ServerConnection,
  field: Parameters<typeof rotationDocument>[0],
  id: string,
): Promise<KeyState> {
  return connection.ask({
    document: rotationDocument(field),
    variables: { id },
    read: ({ apiKey }) => readState(apiKey),
  });
}

/**
 * Delivers secrets, and reverts the change where that fails.
 * @throws what `delivery` throws; KeysError where the change cannot be reverted
 */
async function deliver<Change>(
  change: Change,
  delivery: SecretDelivery<Change> | undefined,
  what: string,
  revert: () => Promise<void>,
): Promise<void> {
  try {
    delivery?.prepare?.(change);
    await delivery?.deliver(change);
  } catch (error) {
    await revert().catch((cause: unknown) => {
      const code = isKeysError(cause) ? cause.code : 'SERVER_FAILED';
      const reason = `${what} could not be delivered, and the change not be reverted: ${(cause as Error).message}`;
      throw new KeysError(code, reason, { cause: error });
    });
    throw error;
  }
}
