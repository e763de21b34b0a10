import type { Actor } from '../authorization/index.ts';
import type { AuditRequest } from '../audit/index.ts';
import type { ManyChangeRequest, SecretDelivery, UndeletingChange } from '../changes/index.ts';
import type { ApiKey, KeyChange, NewKey, RotationRequest } from '../key/index.ts';
import type { SelectionQuery } from '../lists/index.ts';
import { type Permission, PermissionSet, type Role } from '../permissions/index.ts';
import type { CreatedKey, KeysService, PageQuery, RotatedKey } from '../service/index.ts';
import { changing, ofServer, reading } from './operation.ts';

const AS_UPDATE = 'With only UPDATE_OWN: as for updateApiKey.';

interface ById {
  readonly id: string;
}

/** A key by its id or by its name. */
type WhichKey = ById | { readonly name: string };

/** The operations of the core, by the names of the root fields of the schema. */
export const OPERATIONS = {
  me: ofServer({ needs: 'ME:READ_OWN', does: 'The key that makes the request.' }),
  online: ofServer({ needs: 'ONLINE:READ_ANY', does: 'Always true.' }),
  info: ofServer({ needs: 'INFO:READ_ANY', does: 'The running program.' }),
  health: reading({
    needs: 'INFO:READ_ANY',
    does: 'The health of the service and its key store. If the store does not answer, that is an answer, too.',
    run: (keys) => keys.store.health(),
  }),

  apiKeys: reading({
    needs: 'API_KEY:READ_OWN',
    does: 'Keys, oldest first. With only READ_OWN: the key itself and those that it created.',
    run: (keys, { query }: { query: PageQuery }, actor) => keys.list(query, actor),
  }),
  apiKey: reading({
    needs: 'API_KEY:READ_OWN',
    does: 'A key by its id or name; null if there is none that the caller may read.',
    run: (keys, which: WhichKey, actor): Promise<ApiKey | undefined> =>
      'id' in which ? keys.findById(which.id, actor) : keys.findByName(which.name, actor),
  }),
  node: reading({
    needs: 'API_KEY:READ_OWN',
    does: 'An object by its global id, for clients that fetch it again; null if there is none that the caller may read.',
    run: (keys, which: ById, actor) => keys.findById(which.id, actor),
  }),
  apiKeyList: reading({
    needs: 'API_KEY:READ_OWN',
    does:
      'A page of keys in any order, with how many there are: what a table of keys shows. With only READ_OWN: the key ' +
      'itself and those that it created.',
    run: (keys, { query }: { query: SelectionQuery }, actor) => keys.lists.select(query, actor),
  }),

  permissions: reading({
    needs: 'PERMISSION:READ_ANY',
    does: 'Everything that can be granted.',
    run: ({ catalog }) => catalog,
  }),
  previewPermissions: reading({
    needs: 'PERMISSION:READ_ANY',
    does: 'What roles and permissions allow together.',
    run: ({ catalog }, granted: { roles: readonly Role[]; permissions: readonly Permission[] }) =>
      PermissionSet.of(catalog, granted),
  }),
  policy: reading({
    needs: 'CONFIG:READ_ANY',
    does: 'What the service demands of all keys.',
    run: ({ catalog }) => catalog.policy,
  }),

  previewApiKey: reading({
    needs: 'API_KEY:CREATE_OWN',
    does: 'What createApiKey would make of this; nothing is written.',
    run: (keys, { input }: { input: NewKey }, actor) => keys.preview(input, actor),
  }),
  createApiKey: changing({
    needs: 'API_KEY:CREATE_OWN',
    does: 'Creates a key. The caller must hold every permission that it grants.',
    run: (keys, { input, delivery }: { input: NewKey; delivery?: SecretDelivery<CreatedKey> }, actor) =>
      keys.create(input, actor, delivery),
  }),
  updateApiKey: changing({
    needs: 'API_KEY:UPDATE_OWN',
    does: 'Changes a key; omitted fields stay as they are. With only UPDATE_OWN: the key itself and those that it created.',
    run: (keys, input: ById & { change: KeyChange }, actor) => keys.update(input.id, input.change, actor),
  }),
  setApiKeyEnabled: changing({
    needs: 'API_KEY:UPDATE_OWN',
    does: `Disables a key, so that it is refused, or enables it again. ${AS_UPDATE}`,
    run: (keys, input: ById & { enabled: boolean }, actor) => keys.setEnabled(input.id, input.enabled, actor),
  }),
  rotateApiKey: changing({
    needs: 'API_KEY:UPDATE_OWN',
    does:
      'Gives a key a new secret; the previous one works until the grace period ends. The caller must hold every ' +
      `permission of the key. ${AS_UPDATE}`,
    run: (
      keys,
      { id: which, request, delivery }: ById & { request: RotationRequest; delivery?: SecretDelivery<RotatedKey> },
      actor,
    ) => keys.rotate(which, request, actor, delivery),
  }),
  activateApiKeyRotation: changing({
    needs: 'API_KEY:UPDATE_OWN',
    does:
      'Begins the grace period of a rotation that waits for the first use of the new secret, as that has arrived. ' +
      AS_UPDATE,
    run: (keys, which: ById, actor) => keys.startGrace(which.id, actor),
  }),
  finishApiKeyRotation: changing({
    needs: 'API_KEY:UPDATE_OWN',
    does: `Invalidates the previous secret at once. ${AS_UPDATE}`,
    run: (keys, which: ById, actor) => keys.finishRotation(which.id, actor),
  }),
  rollBackApiKeyRotation: changing({
    needs: 'API_KEY:UPDATE_OWN',
    does: `Invalidates the new secret at once; the previous one stays valid. ${AS_UPDATE}`,
    run: (keys, which: ById, actor) => keys.rollBackRotation(which.id, actor),
  }),
  deleteApiKeys: changing({
    needs: 'API_KEY:DELETE_OWN',
    does:
      'Deletes keys and all keys that they created. Unknown ids are ignored. With only DELETE_OWN: as for ' +
      'updateApiKey.',
    run: (keys, input: { ids: readonly string[] }, actor) => keys.delete(input.ids, actor),
  }),

  apiKeyChangePlan: reading({
    needs: 'API_KEY:READ_OWN',
    does: 'What a change of several keys would do. Nothing is written.',
    run: (keys, input: { ids: readonly string[]; request: ManyChangeRequest }, actor) =>
      keys.permittedChanges.planOf(input.ids, input.request, actor),
  }),
  narrowApiKeys: changing({
    needs: 'API_KEY:UPDATE_OWN',
    does:
      'Disables keys, or lets them expire earlier, in one transaction: all of them, or none. Those that are that way ' +
      `already stay as they are. ${AS_UPDATE}`,
    run: changeMany,
  }),
  updateApiKeys: changing({
    needs: 'API_KEY:UPDATE_OWN',
    does:
      'Changes the same fields of several keys, in one transaction: of all of them, or of none. Omitted fields stay ' +
      `as they are. ${AS_UPDATE}`,
    run: changeMany,
  }),
  auditLog: reading({
    needs: 'LOGS:READ_ANY',
    does:
      'Who did what, newest first. Keys that may not read all keys get what is about or by keys that they may read, ' +
      'and what concerns no key; names of others are null.',
    run: (keys, { request, place }: { request: AuditRequest; place?: { before?: number; after?: number } }, actor) =>
      keys.audit.read(request, actor, place),
  }),
  auditCounts: reading({
    needs: 'LOGS:READ_ANY',
    does:
      'How many entries there are in each hour or day, as far as they may be read. Where there are more than 50000 in ' +
      'that time, the newest of them are counted.',
    run: (keys, { request }: { request: Parameters<KeysService['audit']['count']>[0] }, actor) =>
      keys.audit.count(request, actor),
  }),
  auditChain: reading({
    needs: 'LOGS:READ_ANY',
    does:
      'How far this server has verified the chain of the log since it started. It begins when this is asked for the ' +
      'first time, and goes on by itself. An entry that it has passed is not read again: "apikey log --verify" reads ' +
      'all of them.',
    run: (keys, _input, actor) => keys.audit.chain(actor),
  }),

  limits: ofServer({ needs: 'CONFIG:READ_ANY', does: 'How much keys, addresses and requests may take.' }),
} as const;

function changeMany(
  keys: KeysService,
  input: { ids: readonly string[]; request: UndeletingChange },
  actor: Actor,
): ReturnType<KeysService['changeAll']> {
  return keys.changeAll(input.ids, input.request, actor);
}
