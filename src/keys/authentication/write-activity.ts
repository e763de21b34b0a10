import type { ActivityBatch } from './activity.ts';
import type { Catalog } from '../permissions/catalog.ts';
import { findChain } from '../authorization/chain.ts';
import { principalOf } from '../authorization/principal.ts';
import { USAGE } from '../key/usage.ts';
import type { KeyWriter } from '../repository.ts';
import { activateRotation } from '../changes/rotate.ts';
import { Transaction } from '../changes/transaction.ts';

/** Writes a batch of activity: uses, the activation of rotations, and refused requests. */
export async function writeActivity(
  writer: KeyWriter,
  { usage, activated, refusals }: ActivityBatch,
  { catalog, now, operator }: { catalog: Catalog; now: number; operator: string },
): Promise<void> {
  await writer.port(USAGE).add(usage);
  for (const { id, publicId } of activated) {
    const key = await writer.findById(id);
    if (!key || key.damaged) continue;
    const caller = principalOf(await findChain(writer, key), catalog);
    const transaction = new Transaction(writer, { caller, catalog, now, operator });
    await activateRotation(transaction, id, publicId);
    await transaction.finish();
  }
  await writer.appendToAuditLog(refusals);
  await writer.rememberTime(now);
}
