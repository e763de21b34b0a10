import type { Refusal } from '../audit/refusals.ts';
import type { AccessObserver } from '../authorization/principal.ts';
import type { ApiKey } from '../key/api-key.ts';
import type { UsedGrant } from '../key/usage.ts';
import type { Permission, Role } from '../permissions/catalog.ts';

/** What is told of which permissions keys use and lack. */
export interface AccessRecord {
  usedPermission(id: string, grant: UsedGrant): void;
  refused(refusal: Refusal): void;
}

/**
 * Tells which permissions a key uses and lacks. There is one for each key that is remembered: an object with closures
 * would take four times as much memory.
 */
export class KeyObserver implements AccessObserver {
  readonly #record: AccessRecord;
  readonly #key: ApiKey;

  constructor(record: AccessRecord, key: ApiKey) {
    this.#record = record;
    this.#key = key;
  }

  used(permission: Permission): void {
    this.#record.usedPermission(this.#key.id, permission);
  }

  granted(role: Role): void {
    this.#record.usedPermission(this.#key.id, `role:${role}`);
  }

  lacked(permissions: readonly Permission[], address?: string): void {
    const { id, name } = this.#key;
    this.#record.refused({
      reason: 'forbidden',
      actor: { kind: 'KEY', id, name },
      apiKey: null,
      missing: permissions.slice(0, 5),
      address,
    });
  }
}
