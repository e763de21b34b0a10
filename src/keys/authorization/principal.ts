import type { ApiKey } from '../key/api-key.ts';
import type { Action, Catalog, Permission } from '../permissions/catalog.ts';
import { KeysError } from '../errors.ts';
import type { PermissionSet } from '../permissions/permission-set.ts';
import { listOf } from '../text.ts';
import { type Chain, chainAccess } from './chain.ts';

/** Is told which permissions a key uses, and which it lacks. */
export interface AccessObserver {
  /** The key has used a permission. */
  used(permission: Permission): void;
  /** A request of the key, from this address, was refused because it lacks these permissions. */
  lacked(permissions: readonly Permission[], address?: string): void;
}

/** An authenticated key, with all that it may do. */
export interface Principal {
  /** The key. */
  readonly key: ApiKey;
  /** The key and its ancestors. */
  readonly chain: Chain;
  /** What its roles and permissions allow together, met with what its ancestors may do. */
  readonly access: PermissionSet;
  /** Which of its secrets was presented. A previous secret uses what the key may use, but changes no key. */
  readonly secret: 'current' | 'previous';
  /** Is told what the key does with its permissions. */
  readonly observer?: AccessObserver | undefined;
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
  return { key: chain.keys[0], chain, access: chainAccess(chain, catalog), secret, observer };
}

/** What an actor may do to any key, or to its own keys only (see `owns`). */
type Verb = 'CREATE' | 'READ' | 'UPDATE' | 'DELETE';

/** A key owns itself and the keys that it created. */
function owns(principal: Principal, key: ApiKey): boolean {
  return key.id === principal.key.id || key.createdBy === principal.key.id;
}

/** Whether an actor may do this to every key. */
export function mayForAny(actor: Actor, verb: Verb): boolean {
  return actor === OPERATOR || uses(actor, 'API_KEY', `${verb}_ANY`);
}

/** Whether an actor may do this to a key. */
export function mayFor(actor: Actor, verb: Verb, key: ApiKey): boolean {
  if (actor !== OPERATOR && owns(actor, key)) return uses(actor, 'API_KEY', `${verb}_OWN`);
  return mayForAny(actor, verb);
}

/** Refuses an actor unless it may do this to each of these keys. @throws ForbiddenError */
export function requireFor(actor: Actor, verb: Verb, keys: readonly ApiKey[]): void {
  for (const key of keys) {
    if (mayFor(actor, verb, key)) continue;
    const own = actor !== OPERATOR && owns(actor, key);
    throw forbidden(actor, [`API_KEY:${verb}_${own ? 'OWN' : 'ANY'}` as Permission]);
  }
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

/** The error for missing permissions, of which the actor's observer is told. */
export function forbidden(actor: Actor, missing: readonly Permission[], reason = ''): ForbiddenError {
  if (actor !== OPERATOR) actor.observer?.lacked(missing);
  const shown: string[] = missing.slice(0, 5);
  if (missing.length > 5) shown.push(`${missing.length - 5} more`);
  return new ForbiddenError(`${reason}this key lacks ${listOf(shown)}.`.replace(/^t/, 'T'), missing);
}
