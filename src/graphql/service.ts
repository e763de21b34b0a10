import { arch, platform } from 'node:process';
import { formatDuration, MAX_PAGE_SIZE } from '../keys/basics/index.ts';
import { OPERATIONS, operationsOn } from '../keys/operations/index.ts';
import { groupPermissions } from '../keys/permissions/index.ts';
import type { KeysService } from '../keys/service/index.ts';
import type { ServiceInfo, ServiceParts } from './context.ts';
import {
  type BudgetLimits,
  DOCUMENT_LIMITS,
  FIELD_LIMITS,
  MAX_ERRORS,
  MAX_EXPANDED_LEVELS,
  MAX_FRAGMENTS,
  MAX_REPEATED_PAIRS,
} from './execution/index.ts';
import { grantsIn } from './resolve.ts';
import type { QueryResolvers, RequestLimits, Resolvers } from './schema-types.ts';

/** The resolvers for the running program, its grants, its limits, and its health. */
export function serviceResolversOf(keys: KeysService, info: ServiceInfo, service: ServiceParts): Resolvers {
  const does = operationsOn(keys, OPERATIONS);
  const Query: QueryResolvers = {
    online: () => true,
    info: () => ({
      ...info,
      uptime: Math.max(0, Date.now() - info.startedAt) / 1000,
      runtime: `Node.js ${process.version}`,
      platform: `${platform} ${arch}`,
    }),
    permissions: (_, _args, { principal }) => {
      const catalog = does.permissions({}, principal);
      return {
        roles: catalog.roles.map((role) => ({
          role,
          description: catalog.meaningOf(role),
          permissions: groupPermissions(catalog.permissionsOf(role)),
        })),
        resources: catalog.offered,
        actions: catalog.actions,
      };
    },
    previewPermissions: (_, args, { principal }) => does.previewPermissions(grantsIn(args), principal).byResource(),
    policy: (_, _args, { principal }) => {
      const { maxLifetime, disableUnused, ...others } = does.policy({}, principal);
      return { ...others, maxLifetime: durationOf(maxLifetime), disableUnused: durationOf(disableUnused) };
    },
    limits: () =>
      service.limits && {
        defaultKeyLimits: keys.catalog.defaultLimits,
        failedCredentials: service.limits.failedCredentials,
        request: requestLimitsOf(service.limits.request),
      },
    health: async (_, _args, { principal }) => {
      const { store, answeredInMs, clockBehindMs, hearsChanges } = await does.health({}, principal);
      return {
        storeKind: ({ sqlite: 'SQLITE', postgres: 'POSTGRESQL' } as const)[store],
        storeAnswers: answeredInMs !== undefined,
        answeredInMs,
        hearsChanges,
        searchIndex: answeredInMs === undefined ? null : true,
        clockBehind: clockBehindMs / 1000,
      };
    },
  };
  return { Query };
}

function durationOf(time: number | null): string | null {
  return time === null ? null : formatDuration(time);
}

function requestLimitsOf(budget: BudgetLimits): RequestLimits {
  // JSON has no infinity.
  const finite = Object.entries(budget).map(([name, limit]) => [name, Number.isFinite(limit) ? limit : null]);
  return {
    ...Object.fromEntries(finite),
    errors: MAX_ERRORS,
    pageSize: MAX_PAGE_SIZE,
    ...DOCUMENT_LIMITS,
    ...FIELD_LIMITS,
    fragments: MAX_FRAGMENTS,
    expandedNesting: MAX_EXPANDED_LEVELS,
    repeatedPairs: MAX_REPEATED_PAIRS,
  };
}
