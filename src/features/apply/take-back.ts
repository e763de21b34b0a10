import type { PlannedChange } from '../../keys/key/index.ts';

/** The operations that take secrets back. */
export interface TakingBack {
  deleteApiKeys(input: { ids: readonly string[] }): Promise<unknown>;
  rollBackApiKeyRotation(input: { id: string }): Promise<unknown>;
  updateApiKey(input: { id: string; change: { expiresIn: string } }): Promise<unknown>;
}

/**
 * Takes back a secret that could not be delivered: a new key is deleted, a rotated one keeps its previous secret, and a
 * renewed one expires at once.
 */
export async function takeBack(keys: TakingBack, id: string, action: PlannedChange['action']): Promise<void> {
  if (action === 'CREATE') await keys.deleteApiKeys({ ids: [id] });
  else if (action === 'ROTATE') await keys.rollBackApiKeyRotation({ id });
  else if (action === 'RENEW') await keys.updateApiKey({ id, change: { expiresIn: '1s' } });
}
