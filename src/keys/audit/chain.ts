import { createHmac, hash, type KeyObject } from 'node:crypto';
import { KeysError } from '../basics/index.ts';
import type { AuditEntry, AuditPosition } from './audit-entry.ts';
import type { AuditReader } from './audit-reader.ts';

/** The hash that the first entry is chained to. */
export const CHAIN_START = '0'.repeat(64);

/** The tag of hashes that only a holder of the key can make. */
const KEYED = 'hmac:';

/** True if a hash was made with a key. After the first such entry all need one, or the key could be left out. */
export function isKeyedHash(text: string): boolean {
  return text.startsWith(KEYED);
}

/** The hash of an entry, made with a key or without. It covers all earlier entries through that of the previous one. */
export function chainHash(
  { number, at, actor, action, apiKey: key, before, after, address }: Omit<AuditEntry, 'hash'>,
  previous: string,
  secret?: KeyObject,
): string {
  const fields = [
    previous,
    number,
    at,
    actor.kind,
    actor.id,
    actor.name,
    action,
    key?.id ?? null,
    key?.name ?? null,
    before,
    after,
    // Entries without an address keep the hash that they had before addresses were recorded.
    ...(address === undefined ? [] : [address]),
  ];
  const text = JSON.stringify(fields);
  return secret ? KEYED + createHmac('sha256', secret).update(text).digest('hex') : hash('sha256', text, 'hex');
}

/** Refuses to extend a log that has a key without that key. @throws KeysError STORE_AUDIT_KEY */
export function requireAuditKey(head: AuditPosition | undefined, key: KeyObject | undefined): void {
  if (!head || !isKeyedHash(head.hash) || key) return;
  throw new KeysError(
    'STORE_AUDIT_KEY',
    'The audit log of this key store has a key. Set SVC_API_AUDIT_KEY to the path of that key.',
  );
}

/**
 * True if the newest entry of a log with a key was made with the key at hand. Otherwise the key is another one, or the
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
