import type { AccessObserver, Principal } from '../keys/authorization/principal.ts';
import type { Permission } from '../keys/permissions/catalog.ts';
import type { Log } from '../log.ts';

/** Observes one request of a key: what it lacks is also logged, with the client's address. */
export class RequestObserver implements AccessObserver {
  readonly #principal: Principal;
  readonly #log: Log;
  readonly #address: string | undefined;

  constructor(principal: Principal, log: Log, address: string | undefined) {
    this.#principal = principal;
    this.#log = log;
    this.#address = address;
  }

  used(permission: Permission): void {
    this.#principal.observer?.used(permission);
  }

  lacked(missing: readonly Permission[]): void {
    const { key, observer } = this.#principal;
    const fields = { reason: 'forbidden', prefix: key.publicId, missing, address: this.#address };
    this.#log.info(fields, 'request forbidden');
    observer?.lacked(missing, this.#address);
  }
}
