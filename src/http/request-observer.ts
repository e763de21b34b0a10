import type { AccessObserver, Principal } from '../keys/authorization/principal.ts';
import type { Permission } from '../keys/permissions/catalog.ts';
import { prefixOf } from '../keys/secret/secret.ts';
import type { RefusalLog } from './refusal-log.ts';

/** Observes one request of a key: what it lacks is also logged, with the client's address. */
export class RequestObserver implements AccessObserver {
  readonly #principal: Principal;
  readonly #refusals: RefusalLog;
  readonly #address: string | undefined;

  constructor(principal: Principal, refusals: RefusalLog, address: string | undefined) {
    this.#principal = principal;
    this.#refusals = refusals;
    this.#address = address;
  }

  used(permission: Permission): void {
    this.#principal.observer?.used(permission);
  }

  lacked(missing: readonly Permission[]): void {
    const { key, observer } = this.#principal;
    const refused = { reason: 'forbidden', prefix: prefixOf(key.publicId), missing, address: this.#address };
    this.#refusals.add('request forbidden', refused);
    observer?.lacked(missing, this.#address);
  }
}
