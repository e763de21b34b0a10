import type { Authenticator } from '../keys/authentication/index.ts';
import type { AccessObserver, Principal } from '../keys/authorization/index.ts';
import type { Permission, Role } from '../keys/permissions/index.ts';
import { prefixOf } from '../keys/secret/index.ts';
import type { Limited } from '../limits/index.ts';
import type { CheckParts } from './bearer-options.ts';
import type { ClientAddresses } from './client-address.ts';
import type { Received } from './received.ts';

/** Inputs and outputs of a check. */
export interface CheckContext extends CheckParts, Limited {
  readonly authenticator: Authenticator;
  readonly clients: ClientAddresses;
}

/** Observes one request of a key, and logs missing permissions with the client's address. */
export class RequestObserver implements AccessObserver {
  readonly #principal: Principal;
  readonly #context: CheckContext;
  readonly #request: Received;
  /** Undefined once the request has lacked a permission. */
  #usedAt: number | undefined;

  /** @param usedAt when the request was counted as a use of its key, in milliseconds since 1970 */
  constructor(principal: Principal, context: CheckContext, request: Received, usedAt: number) {
    this.#principal = principal;
    this.#context = context;
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

  called(tool: string): void {
    this.#principal.observer?.called(tool);
  }

  passed(route: string): void {
    this.#principal.observer?.passed(route);
  }

  lacked(missing: readonly Permission[], _address?: string, tool?: string): void {
    const { apiKey: key, observer } = this.#principal;
    const { refusals, clients, authenticator } = this.#context;
    if (this.#usedAt !== undefined) authenticator.noteForbidden(this.#principal, this.#usedAt);
    this.#usedAt = undefined;
    const { address } = clients.of(this.#request);
    const refused = { reason: 'forbidden', prefix: prefixOf(key.publicId), missing, address };
    if (this.#request.notes?.details) this.#request.notes.details.code = 'FORBIDDEN';
    refusals.add('request forbidden', refused, this.#request.notes);
    observer?.lacked(missing, address, tool);
  }
}
