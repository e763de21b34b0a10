import type { AccessObserver, Principal } from '../keys/authorization/principal.ts';
import type { Permission } from '../keys/permissions/catalog.ts';
import { prefixOf } from '../keys/secret/secret.ts';
import type { RefusalLog } from './refusal-log.ts';

/** A request that knows where it came from. */
export interface Addressed {
  /** The client's address, if it is known. */
  address(): string | undefined;
}

/** Observes one request of a key: what it lacks is also logged, with the client's address. */
export class RequestObserver implements AccessObserver {
  readonly #principal: Principal;
  readonly #refusals: RefusalLog;
  readonly #request: Addressed;

  constructor(principal: Principal, refusals: RefusalLog, request: Addressed) {
    this.#principal = principal;
    this.#refusals = refusals;
    this.#request = request;
  }

  used(permission: Permission): void {
    this.#principal.observer?.used(permission);
  }

  lacked(missing: readonly Permission[]): void {
    const { key, observer } = this.#principal;
    const address = this.#request.address();
    this.#refusals.add('request forbidden', { reason: 'forbidden', prefix: prefixOf(key.publicId), missing, address });
    observer?.lacked(missing, address);
  }
}
