import assert from 'node:assert/strict';
import type { SecretDelivery } from '../../src/keys/changes/delivery.ts';

/**
 * Makes a change whose secrets cannot be delivered.
 * @param make makes the change with the given delivery
 * @param meanwhile runs between the commit and the failure
 * @returns the change as committed, before the rollback
 */
export async function failDelivery<Change>(
  make: (delivery: SecretDelivery<Change>) => Promise<Change>,
  meanwhile: (change: Change) => Promise<unknown> = async () => {},
): Promise<Change> {
  const failure = new Error('nobody took the secrets');
  let committed: Change | undefined;
  const deliver = async (change: Change) => {
    committed = change;
    await meanwhile(change);
    throw failure;
  };
  await assert.rejects(make({ deliver }), failure);
  return committed!;
}
