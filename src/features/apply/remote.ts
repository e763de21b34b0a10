import { formatTime, KeysError } from '../../keys/basics/index.ts';
import type { PlannedChange } from '../../keys/key/index.ts';
import type { Server } from '../../keys/operations/index.ts';
import { deliver } from '../../remote/deliver.ts';
import { permissionsInput } from '../../remote/inputs.ts';
import { plannedIn, REQUESTS as OF_KEYS } from '../../remote/requests.ts';
import { mapRequest } from '../../remote/shape.ts';
import type { Applied, ApplyInput } from './apply.ts';
import type { DeclaredKey } from './declaration.ts';
import { plannedCreation } from './plan.ts';
import { REQUESTS } from './requests.ts';
import { takeBack } from './take-back.ts';

export async function applyApiKeys(
  server: Server,
  { declared, rules: { prune, adopt }, dryRun, delivery }: ApplyInput,
): Promise<Applied> {
  if (adopt)
    throw new KeysError(
      'STORE_REQUIRED',
      'Only the operator can adopt keys. Run the command on the machine with the store, or leave out --adopt.',
    );
  const request = mapRequest(REQUESTS.applyApiKeys, (applied) => appliedIn(applied, declared));
  const apply = (isDryRun: boolean) =>
    server.ask(request, { input: { keys: declared.map(declaredInput), prune, dryRun: isDryRun } });
  const plan = await apply(true);
  if (dryRun || plan.changes.length === 0) return plan;
  const named = (...actions: PlannedChange['action'][]) =>
    plan.changes
      .filter(({ action }) => actions.includes(action))
      .map(({ name }) => ({ key: '', apiKey: { id: '', name } }));
  delivery?.begin?.();
  // A delivery that must fail fails before anything is changed, as far as it can know.
  delivery?.prepare?.({ ...plan, created: named('CREATE'), rotated: named('ROTATE', 'RENEW') });
  const applied = await apply(false);
  const ids = applied.created.map(({ apiKey }) => apiKey.id);
  await deliver(applied, delivery, 'The secrets of the new API keys', async () => {
    if (ids.length > 0) await server.ask(OF_KEYS.deleteApiKeys, { ids });
    for (const { id, action } of applied.changes) if (action !== 'CREATE') await takeBack(keysOf(server), id!, action);
  });
  return applied;
}

function keysOf(server: Server): Parameters<typeof takeBack>[0] {
  return {
    deleteApiKeys: (which) => server.ask(OF_KEYS.deleteApiKeys, which),
    rollBackApiKeyRotation: (which) => server.ask(OF_KEYS.rollBackApiKeyRotation, which),
    updateApiKey: ({ id, change }) => server.ask(OF_KEYS.updateApiKey, { input: { id, ...change } }),
  };
}

/** The changes of an apply. @throws TypeError for a key that is not declared */
function appliedIn(
  { changes, ...applied }: ReturnType<typeof REQUESTS.applyApiKeys.read>,
  declared: readonly DeclaredKey[],
): Applied {
  const declaredAs = (name: string) => {
    const key = declared.find((each) => each.name === name);
    if (!key) throw new TypeError('a key that is not declared');
    return key;
  };
  // A file gets the name of its key: no other than one of those declared here.
  for (const { apiKey } of [...applied.created, ...applied.rotated]) declaredAs(apiKey.name);
  const ids = applied.created.map(({ apiKey }) => apiKey.id);
  const planned = changes.map((change) =>
    change.action === 'CREATE' ? plannedCreation(declaredAs(change.name), ids.shift()) : plannedIn(change),
  );
  return { ...applied, changes: planned, confusable: [] };
}

function declaredInput({ permissions, expiresAt, ...key }: DeclaredKey) {
  return { ...key, permissions: permissionsInput(permissions), expiresAt: formatTime(expiresAt) };
}
