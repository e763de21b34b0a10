import type {
  Changed,
  Created,
  Deleted,
  KeyAdministration,
  KeyOperations,
  KeyState,
  Rotated,
} from '../keys/administration.ts';
import type { SecretDelivery } from '../keys/changes/delivery.ts';
import { assertValid } from '../keys/errors.ts';
import type { KeyChange, KeyFields, NewKey } from '../keys/key/api-key.ts';
import { readRotation, type RotationRequest } from '../keys/key/rotation.ts';
import { validateChange } from '../keys/key/validation.ts';
import { createCatalog } from '../keys/permissions/catalog.ts';
import { methodsOf } from '../keys/port.ts';
import { formatTime } from '../keys/time.ts';
import { type Data, ServerConnection, type ServerOptions } from './connection.ts';
import { deliver } from './deliver.ts';
import { CREATE, DELETE, DISABLE, ENABLE, rotationDocument, ROTATE, UPDATE } from './documents.ts';
import { readCreated, readIssue, readName, readRotated, readState } from './read-key.ts';
import { RemoteConsents } from './remote-consents.ts';
import { RemoteContainments } from './remote-containments.ts';
import { RemoteDeclarations } from './remote-declarations.ts';
import { RemoteQueries } from './remote-queries.ts';
import { changeInput } from './write-key.ts';

/**
 * What commands do with the keys of a running server, over its GraphQL, as the key that they send. The rules run on the
 * server; here, what was typed is brought into the form of the schema.
 */
export function remoteKeys(options: ServerOptions): KeyAdministration {
  const connection = new ServerConnection(options);
  const keys = new RemoteKeys(options.server, connection);
  const features = methodsOf(
    new RemoteConsents(connection, () => keys.catalog()),
    new RemoteContainments(connection),
    new RemoteDeclarations(connection),
  );
  return Object.assign(keys, features);
}

class RemoteKeys extends RemoteQueries implements KeyOperations {
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
