import type { AccessObserver, Principal } from '../keys/authorization/principal.ts';
import type { Permission, Role } from '../keys/permissions/catalog.ts';
import { prefixOf } from '../keys/secret/secret.ts';
import type { ClientAddresses, Received } from './client-address.ts';
import type { RefusalLog } from './refusal-log.ts';

/** What is told of requests. */
export interface Told {
  readonly refusals: RefusalLog;
  readonly clients: ClientAddresses;
  /** Is told once of a request that lacks a permission, and when it was counted as a use of its key. */
  readonly noteForbidden: (principal: Principal, usedAt: number) => void;
}

/** Observes one request of a key: what it lacks is also logged, with the client's address. */
export class RequestObserver implements AccessObserver {
  readonly #principal: Principal;
  readonly #told: Told;
  readonly #request: Received;
  /** Undefined once the request has lacked a permission. */
  #usedAt: number | undefined;

  /** @param usedAt when the request was counted as a use of its key, in milliseconds since 1970 */
  constructor(principal: Principal, told: Told, request: Received, usedAt: number) {
    this.#principal = principal;
    this.#told = told;
    this.#request = request;
    this.#usedAt = usedAt;
  }

  used(permission: Permission): void {
    this.#request.notes?.details?.permissions.add(permission);
    this.#principal.observer?.used(permission);
  }

  granted(role: Role): void {
    this.#principal.observer?.granted(role);
  }

  lacked(missing: readonly Permission[]): void {
    const { apiKey: key, observer } = this.#principal;
    const { refusals, clients, noteForbidden } = this.#told;
    if (this.#usedAt !== undefined) noteForbidden(this.#principal, this.#usedAt);
    this.#usedAt = undefined;
    const { address } = clients.of(this.#request);
    const refused = { reason: 'forbidden', prefix: prefixOf(key.publicId), missing, address };
    if (this.#request.notes?.details) this.#request.notes.details.code = 'FORBIDDEN';
    refusals.add('request forbidden', refused, this.#request.notes);
    observer?.lacked(missing, address);
  }
}
