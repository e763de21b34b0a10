import { userInfo } from 'node:os';
import {
  formatList,
  invalidOption,
  KeysError,
  kindOf,
  madeOnce,
  splitLimit,
  withoutStackTrace,
} from '../basics/index.ts';
import type { ApiKey } from '../key/index.ts';
import {
  type Action,
  type Catalog,
  invalidPermission,
  type Permission,
  type PermissionSet,
  type Role,
  splitPermission,
} from '../permissions/index.ts';
import { type Chain, chainAccess } from './chain.ts';
import { type AppliedLimit, type Charge, NOT_YET, ONCE, type Restrictions, restrictionsOf } from './restrictions.ts';

/** Records which permissions a key uses, and which it lacks. */
export interface AccessObserver {
  /** The key has used a permission. */
  used(permission: Permission): void;
  /** The key has granted a role. To do so it must hold the role, not just its permissions. */
  granted(role: Role): void;
  /** The key has called a tool of an MCP server. */
  called(tool: string): void;
  /** A route let one of its requests pass. */
  passed(route: string): void;
  /** A request of the key, from this address, was refused because it lacks these permissions, for this tool. */
  lacked(permissions: readonly Permission[], address?: string, tool?: string): void;
}

/** The key of a request that was accepted. */
export interface Caller {
  /** The key, without its secret. */
  readonly apiKey: ApiKey;
  /** The id of the key that owns it: the first of the chain of keys that created it, or itself. */
  readonly owner: string;
  /**
   * True if it is allowed, such as `WIKI:READ_ANY`. It then counts as used, and `apikey suggest` keeps it.
   * @throws KeysError OPTION_INVALID for a malformed permission
   */
  can(permission: Permission): boolean;
  /** All permissions of the key. Counts as no use. */
  permissions(): Permission[];
}

/** The parts of a principal. */
interface PrincipalParts {
  /** Everything that can be granted. */
  readonly catalog: Catalog;
  /** The key and its ancestors. */
  readonly chain: Chain;
  /** The permissions that its grants and those of its ancestors have in common. */
  readonly access: PermissionSet;
  /** Restrictions that apply to all its requests; undefined if there are none. */
  readonly restrictions?: Restrictions | undefined;
  /** The secret that was presented. A previous secret can use the key's permissions, but cannot change keys. */
  readonly secret: 'current' | 'previous';
  /** Records the permissions that the key uses. */
  readonly observer?: AccessObserver | undefined;
}

/** An authenticated key with everything it is allowed to do. Logs and JSON show the key alone, without its parents. */
export class Principal implements Caller, PrincipalParts {
  readonly apiKey: ApiKey;
  readonly #parts: PrincipalParts;

  constructor(parts: PrincipalParts) {
    this.apiKey = parts.chain.keys[0];
    this.#parts = parts;
  }

  get catalog(): Catalog {
    return this.#parts.catalog;
  }

  get chain(): Chain {
    return this.#parts.chain;
  }

  get access(): PermissionSet {
    return this.#parts.access;
  }

  get restrictions(): Restrictions | undefined {
    return this.#parts.restrictions;
  }

  get secret(): 'current' | 'previous' {
    return this.#parts.secret;
  }

  get observer(): AccessObserver | undefined {
    return this.#parts.observer;
  }

  /** The same principal with another observer. */
  observedBy(observer: AccessObserver | undefined): Principal {
    return new Principal({ ...this.#parts, observer });
  }

  get owner(): string {
    return this.chain.keys.at(-1)!.id;
  }

  can(permission: Permission): boolean {
    const problem =
      typeof permission === 'string'
        ? invalidPermission(permission, this.catalog)
        : `A permission is ${kindOf(permission)}. Write RESOURCE:ACTION.`;
    if (problem !== undefined) throw invalidOption('principal.can', problem);
    return uses(this, ...splitPermission(permission));
  }

  permissions(): Permission[] {
    return this.access.permissions();
  }
}

/** The one with access to the store itself, on the command line or as the host program. It is allowed everything. */
export const OPERATOR = 'operator';
/** The maker of a request: a key, or the operator. */
export type Actor = Principal | typeof OPERATOR;

/** The principal of an accepted key. */
export function principalOf(
  chain: Chain,
  catalog: Catalog,
  { secret = 'current', observer }: Partial<Pick<Principal, 'secret' | 'observer'>> = {},
): Principal {
  const restrictions = restrictionsOf(chain, catalog);
  return new Principal({ catalog, chain, access: chainAccess(chain, catalog), restrictions, secret, observer });
}

/** Verbs of actions on keys. `actionOn` adds `_ANY` or `_OWN`. */
type Verb = 'CREATE' | 'READ' | 'UPDATE' | 'DELETE';

/** The action that a principal needs. A key owns itself and the keys that it created. */
function actionOn({ apiKey: { id } }: Principal, verb: Verb, key: ApiKey): Action {
  return key.id === id || key.createdBy === id ? `${verb}_OWN` : `${verb}_ANY`;
}

export function mayFor(actor: Actor, verb: Verb, key: ApiKey): boolean {
  return actor === OPERATOR || uses(actor, 'API_KEY', actionOn(actor, verb, key));
}

/**
 * Refuses an actor that is not allowed to do this to each of these keys.
 * @param reason begins the message, such as `Pruning deletes all of these: `
 * @throws ForbiddenError
 */
export function requireFor(actor: Actor, verb: Verb, keys: readonly ApiKey[], reason = ''): void {
  if (actor === OPERATOR) return;
  for (const key of keys)
    if (!mayFor(actor, verb, key)) throw forbidden(actor, [`API_KEY:${actionOn(actor, verb, key)}`], reason);
}

/**
 * Refuses a principal that lacks a permission; otherwise it counts as used.
 * @param permission `RESOURCE:ACTION`, if the caller has it already
 * @throws ForbiddenError
 */
export function requirePermission(
  principal: Principal,
  resource: string,
  action: Action,
  permission: Permission = `${resource}:${action}`,
): void {
  if (!principal.access.has(resource, action)) throw forbidden(principal, [permission]);
  principal.observer?.used(permission);
}

/** True if a principal has a permission, which then counts as used. */
export function uses(principal: Principal, resource: string, action: Action): boolean {
  if (!principal.access.has(resource, action)) return false;
  principal.observer?.used(`${resource}:${action}`);
  return true;
}

/** The actor is not allowed to do this. The message names the first 5 missing permissions. */
export class ForbiddenError extends KeysError {
  /** All missing permissions; empty if another rule refuses. */
  readonly missing: readonly Permission[];

  constructor(message: string, missing: readonly Permission[] = []) {
    super('FORBIDDEN', message);
    this.missing = missing;
  }
}

export function forbidden(principal: Principal, missing: readonly Permission[], reason = ''): ForbiddenError {
  const shown: string[] = missing.slice(0, 5);
  if (missing.length > 5) shown.push(`${missing.length - 5} more`);
  return denied(principal, `${reason}this key lacks ${formatList(shown)}.`.replace(/^t/, 'T'), missing);
}

/** The error for a principal that a rule refuses. Its observer records the refusal. */
export function denied(principal: Principal, message: string, missing: readonly Permission[] = []): ForbiddenError {
  principal.observer?.lacked(missing);
  return withoutStackTrace(() => new ForbiddenError(message, missing));
}

/** The name of the user who runs the process. In a container, users can lack a name. */
export function operatorName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

/** Restrictions of requests with a charge, by those of their keys. */
const chargedOf = madeOnce<Charge, WeakMap<Restrictions | Chain, Restrictions>>(() => new WeakMap());

/** Finds the restrictions of a request by its charge; undefined if it has none. */
export function restrictionsFor({ chain, restrictions }: Principal, charge: Charge): Restrictions | undefined {
  const { requests, cost, routes } = charge;
  if (charge === ONCE || charge === NOT_YET || (!restrictions && routes.length === 0)) return restrictions;
  const known = chargedOf(charge);
  const holder = restrictions ?? chain;
  let charged = known.get(holder);
  if (charged) return charged;
  const { limitsId = '', limits = [], networks = [], audiences = [] } = restrictions ?? {};
  const ofRoutes = chain.keys.flatMap(({ id: keyId }) =>
    routes.map(({ cost: weight, ...limit }): AppliedLimit => ({ keyId, ...limit, weight })),
  );
  const weighted = limits.map((applied) => {
    return { ...applied, weight: splitLimit(applied.limit).unit === 'uses' ? requests : cost };
  });
  const named = ofRoutes.map(({ keyId, limit, route, weight }) => `${keyId} ${limit} ${route} ${weight}`);
  charged = {
    limitsId: [limitsId, requests, cost, ...named].join(),
    limits: [...weighted, ...ofRoutes],
    networks,
    audiences,
  };
  known.set(holder, charged);
  return charged;
}
