import type { AccessObserver, Principal } from '../keys/authorization/principal.ts';
import type { Permission } from '../keys/permissions/catalog.ts';
import { prefixOf } from '../keys/secret/secret.ts';
import type { CheckedRequest } from './bearer-check.ts';
import type { RefusalLog } from './refusal-log.ts';

/** Observes one request of a key: what it lacks is also logged, with the client's address. */
export class RequestObserver implements AccessObserver {
  readonly #principal: Principal;
  readonly #refusals: RefusalLog;
  readonly #request: Pick<CheckedRequest, 'address'>;

  constructor(principal: Principal, refusals: RefusalLog, request: Pick<CheckedRequest, 'address'>) {
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
