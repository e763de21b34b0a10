import type { KeyObject } from 'node:crypto';
import { KeysError } from '../errors.ts';
import { type AuditPosition, type AuditReader, CHAIN_START, chainHash, isKeyedHash } from './audit-entry.ts';

/** Refuses to extend a log that has a key without that key. @throws KeysError STORE_AUDIT_KEY */
export function requireAuditKey(head: AuditPosition | undefined, key: KeyObject | undefined): void {
  if (!head || !isKeyedHash(head.hash) || key) return;
  throw new KeysError(
    'STORE_AUDIT_KEY',
    'The audit log of this key store has a key. Set SVC_API_AUDIT_KEY to the path of that key.',
  );
}

/**
 * Whether the newest entry of a log that has a key was made with the key at hand. If not, it is another key, or the
 * entry was changed.
 * @throws KeysError STORE_AUDIT_KEY without a key
 */
export async function matchesAuditKey(log: AuditReader): Promise<boolean> {
  const head = await log.head();
  requireAuditKey(head, log.key);
  if (!head || !isKeyedHash(head.hash)) return true;
  const [newest, previous = await log.start()] = await log.find({
    order: 'newest',
    before: head.number + 1,
    limit: 2,
  });
  if (newest?.number !== head.number) return true;
  return chainHash(newest, previous?.hash ?? CHAIN_START, log.key) === head.hash;
}
