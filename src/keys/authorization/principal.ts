import { userInfo } from 'node:os';
import { formatList, invalidOption, KeysError, kindOf, splitLimit, withoutStackTrace } from '../basics/index.ts';
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
import {
  type AppliedLimit,
  type Charge,
  CHARGED,
  NOT_YET,
  ONCE,
  type Restrictions,
  restrictionsOf,
} from './restrictions.ts';

/** Is told which permissions a key uses, and which it lacks. */
export interface AccessObserver {
  /** The key has used a permission. */
  used(permission: Permission): void;
  /** The key has granted a role, which takes holding that role: its permissions alone do not do. */
  granted(role: Role): void;
  /** The key has called a tool of an MCP server. */
  called(tool: string): void;
  /** One of its requests was let pass by a route. */
  passed(route: string): void;
  /** A request of the key, from this address, was refused because it lacks these permissions, for this tool. */
  lacked(permissions: readonly Permission[], address?: string, tool?: string): void;
}

/** The key of a request that was accepted. */
export interface Caller {
  /** The key, without its secret. */
  readonly apiKey: ApiKey;
  /** The id of the key that answers for it: the first of the keys that created one another down to it, or itself. */
  readonly owner: string;
  /**
   * Whether it may do something, such as `DOCKER:READ_ANY`. If so, that counts as used, by which `apikey suggest` knows
   * what the key needs.
   * @throws KeysError OPTION_INVALID for what is not a permission
   */
  can(permission: Permission): boolean;
  /** All that it may do, which counts as no use. */
  permissions(): Permission[];
}

/** What is known of an authenticated key. */
interface PrincipalParts {
  /** Everything that can be granted. */
  readonly catalog: Catalog;
  /** The key and its ancestors. */
  readonly chain: Chain;
  /** What its roles and permissions allow together, met with what its ancestors may do. */
  readonly access: PermissionSet;
  /** What holds its requests, whatever they ask for; undefined if nothing does. */
  readonly restrictions?: Restrictions | undefined;
  /** Which of its secrets was presented. A previous secret uses what the key may use, but changes no key. */
  readonly secret: 'current' | 'previous';
  /** Is told what the key does with its permissions. */
  readonly observer?: AccessObserver | undefined;
}

/** An authenticated key, with all that it may do. A log or JSON of it has the key alone, and nothing of its parents. */
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

  /** The same, of which another observer is told. */
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

/** Whoever has access to the store itself, by the command line or as the host program: may do everything. */
export const OPERATOR = 'operator';
/** Who makes a request: a key, or the operator. */
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

/** What an actor may do to any key, or to its own keys only (see `actionOn`). */
type Verb = 'CREATE' | 'READ' | 'UPDATE' | 'DELETE';

/** What a principal must be allowed to. A key owns itself and the keys that it created. */
function actionOn({ apiKey: { id } }: Principal, verb: Verb, key: ApiKey): Action {
  return key.id === id || key.createdBy === id ? `${verb}_OWN` : `${verb}_ANY`;
}

export function mayFor(actor: Actor, verb: Verb, key: ApiKey): boolean {
  return actor === OPERATOR || uses(actor, 'API_KEY', actionOn(actor, verb, key));
}

/** Refuses an actor unless it may do this to each of these keys. @throws ForbiddenError */
export function requireFor(actor: Actor, verb: Verb, keys: readonly ApiKey[]): void {
  if (actor === OPERATOR) return;
  for (const key of keys) requirePermission(actor, 'API_KEY', actionOn(actor, verb, key));
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

/** Whether a principal has a permission; if so, it counts as used. */
export function uses(principal: Principal, resource: string, action: Action): boolean {
  if (!principal.access.has(resource, action)) return false;
  principal.observer?.used(`${resource}:${action}`);
  return true;
}

/** The actor may not do this. The message names the first 5 missing permissions. */
export class ForbiddenError extends KeysError {
  /** All missing permissions; empty where another rule refuses. */
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

/** The error for what a rule denies to a principal, whose observer is told of it. */
export function denied(principal: Principal, message: string, missing: readonly Permission[] = []): ForbiddenError {
  principal.observer?.lacked(missing);
  return withoutStackTrace(() => new ForbiddenError(message, missing));
}

/** The user who runs the process; in a container it may have no name. */
export function operatorName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

/** Finds the restrictions of a request by its charge; undefined if it has none. */
export function restrictionsFor({ chain, restrictions }: Principal, charge: Charge): Restrictions | undefined {
  const { requests, cost, routes } = charge;
  if (charge === ONCE || charge === NOT_YET || (!restrictions && routes.length === 0)) return restrictions;
  let known = CHARGED.get(charge);
  if (!known) CHARGED.set(charge, (known = new WeakMap()));
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
