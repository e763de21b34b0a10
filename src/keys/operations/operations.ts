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
  me: ofServer({ needs: 'ME:READ_OWN', does: 'The requesting key.' }),
  online: ofServer({ needs: 'ONLINE:READ_ANY', does: 'Always true.' }),
  info: ofServer({ needs: 'INFO:READ_ANY', does: 'The running program.' }),
  health: reading({
    needs: 'INFO:READ_ANY',
    does: 'The health of the service and its key store. A store that does not answer is reported, and is no error.',
    run: (keys) => keys.store.health(),
  }),

  apiKeys: reading({
    needs: 'API_KEY:READ_OWN',
    does: 'Keys, oldest first. With only READ_OWN: the key itself and the keys that it created.',
    run: (keys, { query }: { query: PageQuery }, actor) => keys.list(query, actor),
  }),
  apiKey: reading({
    needs: 'API_KEY:READ_OWN',
    does: 'A key by its id or name; null if there is none that the caller can read.',
    run: (keys, which: WhichKey, actor): Promise<ApiKey | undefined> =>
      'id' in which ? keys.findById(which.id, actor) : keys.findByName(which.name, actor),
  }),
  node: reading({
    needs: 'API_KEY:READ_OWN',
    does: 'An object by its global id, for clients that refetch it; null if there is none that the caller can read.',
    run: (keys, which: ById, actor) => keys.findById(which.id, actor),
  }),
  apiKeyList: reading({
    needs: 'API_KEY:READ_OWN',
    does:
      'A page of keys in any order, with their number, for a table of keys. With only READ_OWN: the key ' +
      'itself and the keys that it created.',
    run: (keys, { query }: { query: SelectionQuery }, actor) => keys.lists.select(query, actor),
  }),

  permissions: reading({
    needs: 'PERMISSION:READ_ANY',
    does: 'Everything that can be granted.',
    run: ({ catalog }) => catalog,
  }),
  previewPermissions: reading({
    needs: 'PERMISSION:READ_ANY',
    does: 'The permissions of roles and single permissions together.',
    run: ({ catalog }, granted: { roles: readonly Role[]; permissions: readonly Permission[] }) =>
      PermissionSet.of(catalog, granted),
  }),
  policy: reading({
    needs: 'CONFIG:READ_ANY',
    does: 'The rules for all keys, from "policy" in svc-api.yaml.',
    run: ({ catalog }) => catalog.policy,
  }),

  previewApiKey: reading({
    needs: 'API_KEY:CREATE_OWN',
    does: 'A preview of createApiKey. Nothing is written.',
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
    does:
      'Changes a key; omitted fields stay as they are. With only UPDATE_OWN: the key itself and the keys that it ' +
      'created.',
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
      'Gives a key a new secret; the previous one keeps working until the grace period ends. The caller must hold ' +
      'every ' +
      `permission of the key. ${AS_UPDATE}`,
    run: (
      keys,
      { id: which, request, delivery }: ById & { request: RotationRequest; delivery?: SecretDelivery<RotatedKey> },
      actor,
    ) => keys.rotate(which, request, actor, delivery),
  }),
  activateApiKeyRotation: changing({
    needs: 'API_KEY:UPDATE_OWN',
    does: 'Starts the grace period of a rotation that waits for the first use of the new secret. ' + AS_UPDATE,
    run: (keys, which: ById, actor) => keys.startGrace(which.id, actor),
  }),
  finishApiKeyRotation: changing({
    needs: 'API_KEY:UPDATE_OWN',
    does: `Revokes the previous secret at once. ${AS_UPDATE}`,
    run: (keys, which: ById, actor) => keys.finishRotation(which.id, actor),
  }),
  rollBackApiKeyRotation: changing({
    needs: 'API_KEY:UPDATE_OWN',
    does: `Revokes the new secret at once; the previous one stays valid. ${AS_UPDATE}`,
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
    does: 'The effects of a change of several keys. Nothing is written.',
    run: (keys, input: { ids: readonly string[]; request: ManyChangeRequest }, actor) =>
      keys.permittedChanges.planOf(input.ids, input.request, actor),
  }),
  narrowApiKeys: changing({
    needs: 'API_KEY:UPDATE_OWN',
    does:
      'Disables keys, or lets them expire earlier, in one transaction: all of them, or none. Keys already in that ' +
      'state ' +
      `stay as they are. ${AS_UPDATE}`,
    run: changeMany,
  }),
  updateApiKeys: changing({
    needs: 'API_KEY:UPDATE_OWN',
    does:
      'Changes the same fields of several keys, in one transaction: all of them, or none. Omitted fields stay ' +
      `as they are. ${AS_UPDATE}`,
    run: changeMany,
  }),
  auditLog: reading({
    needs: 'LOGS:READ_ANY',
    does:
      'The audit log, newest first. A key that cannot read all keys gets the entries about or by keys that it can ' +
      'read, and entries that concern no key; names of other keys are null.',
    run: (keys, { request, place }: { request: AuditRequest; place?: { before?: number; after?: number } }, actor) =>
      keys.audit.read(request, actor, place),
  }),
  auditCounts: reading({
    needs: 'LOGS:READ_ANY',
    does:
      'The number of entries in each hour or day that the caller can read. If there are more than 50000 in ' +
      'that time, the newest of them are counted.',
    run: (keys, { request }: { request: Parameters<KeysService['audit']['count']>[0] }, actor) =>
      keys.audit.count(request, actor),
  }),
  auditChain: reading({
    needs: 'LOGS:READ_ANY',
    does:
      'How much of the log this server has verified since it started. Verification begins with the first request of ' +
      'this field, and continues by itself. It does not read verified entries again: "apikey log --verify" reads all ' +
      'entries.',
    run: (keys, _input, actor) => keys.audit.chain(actor),
  }),

  limits: ofServer({ needs: 'CONFIG:READ_ANY', does: 'The limits of keys, addresses and requests.' }),
} as const;

function changeMany(
  keys: KeysService,
  input: { ids: readonly string[]; request: UndeletingChange },
  actor: Actor,
): ReturnType<KeysService['changeAll']> {
  return keys.changeAll(input.ids, input.request, actor);
}
