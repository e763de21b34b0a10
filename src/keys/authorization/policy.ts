import { formatDuration, formatList, formatTime, KeysError } from '../basics/index.ts';
import { type ApiKey, statusOf } from '../key/index.ts';
import { type Catalog, type Grant, PermissionSet, type PolicyRule, ruleText } from '../permissions/index.ts';
import type { KeyFinder } from '../repository/index.ts';
import { type Chain, chainExpiry, chainStatus } from './chain.ts';
import { addedGrants, MAX_NAMED } from './granting.ts';
import { type Actor, OPERATOR } from './principal.ts';

/** The caller, and the time, in milliseconds since 1970. */
interface Context {
  caller: Actor;
  catalog: Catalog;
  now: number;
}

type NewKey = Pick<ApiKey, 'name' | 'roles' | 'permissions' | 'expiresAt'>;
type Created = Pick<ApiKey, 'name' | 'createdBy' | 'expiresAt' | 'disabledAt' | 'damaged'>;

const MAX_GRANTS = 5;

/** Refuses a change that the policy does not allow. @throws KeysError POLICY_VIOLATED with all violations */
export function requirePolicy(violations: readonly string[]): void {
  if (violations.length === 0) return;
  const rest = violations.length - MAX_NAMED;
  const named = violations.slice(0, MAX_NAMED);
  throw new KeysError('POLICY_VIOLATED', [...named, ...(rest > 0 ? [`And ${rest} more.`] : [])].join('\n'));
}

/** Lists the policy violations of a new key, each as a sentence with its rule. The number of keys is not checked. */
export function violationsOfNew(key: NewKey, { caller, catalog, now }: Context): string[] {
  return [...violationsOfEnd(key, catalog, now), ...grantViolations(key, key, caller, catalog)];
}

/**
 * Lists the policy violations of a change, without the number of keys. Unchanged properties are ignored: a key that
 * breaks a new rule keeps working. A key that becomes usable again, by being enabled or by a later expiry, counts as
 * new.
 * @param chain the key before the change, and its ancestors
 */
export function violationsOfChange(chain: Chain, after: ApiKey, { caller, catalog, now }: Context): string[] {
  const [before] = chain.keys;
  if (isRevived(chain, after, now)) return violationsOfNew(after, { caller, catalog, now });
  return [
    ...(isEndChanged(chain, after) ? violationsOfEnd(after, catalog, now) : []),
    ...grantViolations(after, addedGrants(before, after, catalog), caller, catalog),
  ];
}

/**
 * Lists violations of the number of keys that a key can create. A change that adds none passes.
 * @param change the keys after the change, and those before it, as far as they differ
 */
export async function violationsByCount(
  find: Pick<KeyFinder, 'countLive'>,
  { added, removed = [] }: { added: readonly Created[]; removed?: readonly Created[] },
  { catalog, now }: Omit<Context, 'caller'>,
): Promise<string[]> {
  const { maxKeysPerCreator: most } = catalog.policy;
  if (most === null) return [];
  const isLive = (key: Created) => key.createdBy !== null && statusOf(key, now) === 'ACTIVE';
  const changes = new Map<string, { by: number; name: string }>();
  for (const { createdBy, name } of added.filter(isLive))
    changes.set(createdBy!, { by: (changes.get(createdBy!)?.by ?? 0) + 1, name });
  for (const { createdBy } of removed.filter(isLive)) {
    const change = changes.get(createdBy!);
    if (change) change.by -= 1;
  }
  const violations: string[] = [];
  for (const [creator, { by, name }] of changes) {
    if (by <= 0) continue;
    const count = (await find.countLive(creator, now)) + by;
    if (count > most) violations.push(tooMany(name, count, catalog));
  }
  return violations;
}

/** The sentence for a key that would have created too many. @param name of one of the new keys */
export function tooMany(name: string, count: number, { policy }: Catalog): string {
  const rule = ruleText('maxKeysPerCreator', policy);
  const what = `With "${name}", the key that creates it would have ${count} live keys`;
  return `${what}, more than the policy allows (${rule}). Delete or disable some of them first.`;
}

/** True if a key becomes usable by a change: by its own state, or because it no longer has a creator. */
function isRevived(chain: Chain, after: ApiKey, now: number): boolean {
  const [before] = chain.keys;
  if (statusOf(after, now) !== 'ACTIVE') return false;
  return statusOf(before, now) !== 'ACTIVE' || (isFreed(before, after) && chainStatus(chain, now) !== 'ACTIVE');
}

/** True if a key gets another expiry, or is no longer bound by its creator's. */
function isEndChanged(chain: Chain, after: ApiKey): boolean {
  const [before] = chain.keys;
  return after.expiresAt !== before.expiresAt || (isFreed(before, after) && chainExpiry(chain) !== after.expiresAt);
}

function isFreed(before: ApiKey, after: ApiKey): boolean {
  return before.createdBy !== null && after.createdBy === null;
}

/** Lists the policy violations of an expiry, of a new key or of a change. */
export function violationsOfEnd(
  { name, expiresAt }: Pick<ApiKey, 'name' | 'expiresAt'>,
  { policy }: Catalog,
  now: number,
): string[] {
  const { maxLifetime, requireExpiry } = policy;
  const latest = maxLifetime === null ? undefined : `${formatTime(now + maxLifetime)} at the latest`;
  const breaks = (what: string, rule: PolicyRule, remedy: string) => [
    `The API key "${name}" would ${what}, which the policy does not allow (${ruleText(rule, policy)}). ${remedy}`,
  ];
  if (expiresAt === null && (requireExpiry || latest !== undefined)) {
    const rule = requireExpiry ? 'requireExpiry' : 'maxLifetime';
    return breaks('never expire', rule, `Give it an expiry${latest === undefined ? '' : `, ${latest}`}.`);
  }
  if (expiresAt === null || latest === undefined || expiresAt <= now + maxLifetime!) return [];
  const remedy = `Let it expire ${latest}, in ${formatDuration(maxLifetime!)}.`;
  return breaks(`expire at ${formatTime(expiresAt)}`, 'maxLifetime', remedy);
}

/** @param given the grants that are new */
function grantViolations(
  { name }: NewKey,
  given: Pick<ApiKey, 'roles' | 'permissions'>,
  caller: Actor,
  catalog: Catalog,
): string[] {
  const foreign = caller === OPERATOR ? [] : notGrantable(given, catalog);
  if (foreign.length === 0) return [];
  const shown = foreign.slice(0, MAX_GRANTS);
  if (foreign.length > MAX_GRANTS) shown.push(`${foreign.length - MAX_GRANTS} more`);
  const rule = ruleText('grantableByKeys', catalog.policy);
  const remedy = 'Grant less, or grant it on the command line, directly on the key store.';
  return [`The policy (${rule}) does not let keys grant ${formatList(shown)}, as for "${name}". ${remedy}`];
}

/**
 * The grants that the policy does not let keys give. A role that keys can grant covers the roles that it includes and
 * its permissions.
 */
export function notGrantable({ roles, permissions }: Pick<ApiKey, 'roles' | 'permissions'>, catalog: Catalog): Grant[] {
  const { grantableByKeys: grantable } = catalog.policy;
  if (!grantable) return [];
  const isPermission = (grant: Grant) => grant.includes(':');
  const own = {
    roles: grantable.filter((grant) => !isPermission(grant)),
    permissions: grantable.filter(isPermission) as ApiKey['permissions'],
  };
  const missing = new PermissionSet(permissions).missingFrom(PermissionSet.of(catalog, own));
  return [...roles.filter((role) => !own.roles.some((each) => catalog.includes(each, role))), ...missing];
}
