import { type DocumentReader, isRecord } from '../keys/document.ts';
import { withoutUndefined } from '../keys/options.ts';
import type { Catalog } from '../keys/permissions/catalog.ts';
import { parsePermissions, parseRoles } from '../keys/permissions/grants.ts';
import { POLICY_RULES, type PolicyRules, readPolicy } from '../keys/permissions/policy.ts';
import { listOf } from '../keys/text.ts';
import { DEFAULT_CONFIG } from './config.ts';

/** Reads what is demanded of keys. @param catalog with all resources and roles */
export function readPolicySection(reader: DocumentReader, value: unknown, catalog: Catalog): PolicyRules {
  if (value === undefined) return DEFAULT_CONFIG.policy;
  if (!isRecord(value)) {
    reader.report(['policy'], `The field "policy" must be a map with fields of ${listOf(POLICY_RULES)}.`);
    return DEFAULT_CONFIG.policy;
  }
  const { maxLifetime, requireExpiry, grantableByKeys, maxKeysPerCreator, disableUnused } = reader.knownFields(
    value,
    ['policy'],
    POLICY_RULES,
  );
  if (requireExpiry !== undefined && typeof requireExpiry !== 'boolean')
    reader.report(['policy', 'requireExpiry'], 'The field "requireExpiry" must be true or false.');
  if (maxKeysPerCreator !== undefined && typeof maxKeysPerCreator !== 'number')
    reader.report(['policy', 'maxKeysPerCreator'], 'The field "maxKeysPerCreator" must be a number.');
  const textOf = (rule: 'maxLifetime' | 'disableUnused', given: unknown) =>
    given === undefined ? undefined : reader.text(given, ['policy', rule]);
  const rules: PolicyRules = withoutUndefined({
    maxLifetime: textOf('maxLifetime', maxLifetime),
    requireExpiry: requireExpiry === true,
    grantableByKeys:
      grantableByKeys === undefined
        ? undefined
        : reader.parsedList(grantableByKeys, ['policy', 'grantableByKeys'], (items) => parseGrants(items, catalog)),
    maxKeysPerCreator: typeof maxKeysPerCreator === 'number' ? maxKeysPerCreator : undefined,
    disableUnused: textOf('disableUnused', disableUnused),
  });
  for (const { rule, message } of readPolicy(rules).issues) reader.report(['policy', rule], message);
  return rules;
}

/** Parses roles and permissions. */
function parseGrants(items: readonly string[], catalog: Catalog) {
  const parsed = items.map((item) =>
    item.includes(':') ? parsePermissions([item], catalog) : parseRoles([item], catalog),
  );
  const values = new Set(parsed.flatMap(({ values: [grant] }) => grant ?? []));
  return { values: [...values], issues: parsed.flatMap(({ issues }) => issues) };
}
