import type { ApiKey } from '../key/api-key.ts';
import type { Action, Catalog, Permission } from '../permissions/catalog.ts';
import { KeysError } from '../errors.ts';
import { PermissionSet } from '../permissions/permission-set.ts';
import { listOf } from '../text.ts';
import { formatTime } from '../time.ts';

/** Sees what a key makes use of, and what it asked for in vain. */
export interface AccessObserver {
  used(grant: Permission): void;
  lacked(grants: readonly Permission[]): void;
}

/** Who asks by a key, with all that it may do. */
export interface Principal {
  readonly key: ApiKey;
  readonly access: PermissionSet;
  readonly observer?: AccessObserver | undefined;
}

/** Who holds the store itself, by the command line: may do all. */
export const OPERATOR = 'operator';
export type Actor = Principal | typeof OPERATOR;

export function principalOf(key: ApiKey, catalog: Catalog, observer?: AccessObserver): Principal {
  return { key, access: PermissionSet.of(catalog, key), observer };
}

/** What one may do to keys: to any, or to one's own (see `owns`). */
type Verb = 'CREATE' | 'READ' | 'UPDATE' | 'DELETE';

/** A key owns itself and the keys that it created. */
export function owns(principal: Principal, key: ApiKey): boolean {
  return key.id === principal.key.id || key.createdBy === principal.key.id;
}

/** Whether an actor may do this to any key at all. */
export function mayForAny(actor: Actor, verb: Verb): boolean {
  return actor === OPERATOR || uses(actor, 'API_KEY', `${verb}_ANY`);
}

/** Whether an actor may do this to a certain key. */
export function mayFor(actor: Actor, verb: Verb, key: ApiKey): boolean {
  if (actor !== OPERATOR && owns(actor, key)) return uses(actor, 'API_KEY', `${verb}_OWN`);
  return mayForAny(actor, verb);
}

/** Refuses an actor that may not do this to these keys. */
export function requireFor(actor: Actor, verb: Verb, keys: readonly ApiKey[]): void {
  for (const key of keys) {
    if (mayFor(actor, verb, key)) continue;
    const own = actor !== OPERATOR && owns(actor, key);
    throw forbidden(actor, [`API_KEY:${verb}_${own ? 'OWN' : 'ANY'}` as Permission]);
  }
}

/** Refuses an actor that would hand out more than it holds. */
export function requireToHold(actor: Actor, granted: PermissionSet): void {
  if (actor === OPERATOR) return;
  const missing = granted.missingFrom(actor.access);
  if (missing.length > 0) throw forbidden(actor, missing, 'Nobody grants more than they hold: ');
  for (const grant of granted.permissions()) actor.observer?.used(grant);
}

/**
 * Refuses an actor whose own end comes before the one it would give: temporary access makes no lasting one.
 * @param expiresAt milliseconds since 1970; null for never
 */
export function requireToOutlive(actor: Actor, expiresAt: number | null): void {
  if (actor === OPERATOR || actor.key.expiresAt === null) return;
  if (expiresAt !== null && expiresAt <= actor.key.expiresAt) return;
  throw new ForbiddenError(
    `Nobody grants more than they hold: this key ends at ${formatTime(actor.key.expiresAt)}.`,
    [],
  );
}

/** Refuses an actor that may not create a key with these grants and this end. */
export function requireToCreate(
  actor: Actor,
  key: Pick<ApiKey, 'roles' | 'permissions' | 'expiresAt'>,
  catalog: Catalog,
): void {
  if (actor !== OPERATOR) requirePermission(actor, 'API_KEY', 'CREATE_OWN');
  requireToHold(actor, PermissionSet.of(catalog, key));
  requireToOutlive(actor, key.expiresAt);
}

/** Refuses a principal that lacks a permission. @param grant the permission as one text, where the caller has it */
export function requirePermission(
  principal: Principal,
  resource: string,
  action: Action,
  grant: Permission = `${resource}:${action}`,
): void {
  if (!principal.access.has(resource, action)) throw forbidden(principal, [grant]);
  principal.observer?.used(grant);
}

/** Whether a principal has a permission, which it makes use of now. */
export function uses(principal: Principal, resource: string, action: Action): boolean {
  if (!principal.access.has(resource, action)) return false;
  principal.observer?.used(`${resource}:${action}`);
  return true;
}

/** A refusal that names the permissions which are missing: the first 5 in its text, all of them in `missing`. */
export class ForbiddenError extends KeysError {
  readonly missing: readonly Permission[];

  constructor(message: string, missing: readonly Permission[]) {
    super('FORBIDDEN', message);
    this.missing = missing;
  }
}

function forbidden(actor: Actor, missing: readonly Permission[], reason = ''): ForbiddenError {
  if (actor !== OPERATOR) actor.observer?.lacked(missing);
  const shown: string[] = missing.slice(0, 5);
  if (missing.length > 5) shown.push(`${missing.length - 5} more`);
  return new ForbiddenError(`${reason}this key lacks ${listOf(shown)}.`.replace(/^t/, 'T'), missing);
}
