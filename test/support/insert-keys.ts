import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import type { Parts } from '../../src/keys/changes/index.ts';
import type { StoredKey } from '../../src/keys/key/api-key.ts';
import { digestSecret } from '../../src/keys/secret/secret.ts';
import type { KeysService } from '../../src/keys/service/service.ts';
import { storedKey } from './keys.ts';

class Insertion {
  readonly #parts: Pick<Parts, 'transactions'>;

  constructor(parts: Pick<Parts, 'transactions'>) {
    this.#parts = parts;
  }

  insert(keys: readonly StoredKey[]): Promise<void> {
    return this.#parts.transactions.run(OPERATOR, (transaction) => transaction.insert(keys, 'CREATE'));
  }
}

/** Creates keys with their audit entries in one transaction, which is faster than one by one. */
export function insertKeys(service: Pick<KeysService, 'feature'>, keys: readonly StoredKey[]): Promise<void> {
  return service.feature(Insertion).insert(keys);
}

/** Guests with numbered names. Each secret is the same as the name. */
export function numberedKeys(count: number): StoredKey[] {
  return Array.from({ length: count }, (_, index) => keyWithSecret(`Key ${index}`, `Key ${index}`));
}

/** A stored key whose secret can have any form. */
export function keyWithSecret(name: string, secret: string, fields: Partial<StoredKey> = {}): StoredKey {
  return { ...storedKey(name), permissions: [], roles: ['GUEST'], digest: digestSecret(secret), ...fields };
}
