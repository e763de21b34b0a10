import { MAX_PAGE_SIZE } from '../keys/page.ts';
import type { KeysService } from '../keys/service.ts';
import { formatDuration } from '../keys/time.ts';
import {
  type BudgetLimits,
  DOCUMENT_LIMITS,
  FIELD_LIMITS,
  MAX_ERRORS,
  MAX_EXPANDED_LEVELS,
  MAX_FRAGMENTS,
  MAX_REPEATED_PAIRS,
} from './execution/index.ts';
import type { Resolvers } from './extension.ts';
import type { Resolve } from './resolve.ts';
import type { ServiceParts } from './service-parts.ts';

/** The resolvers for what the service allows, and how it is. */
export function serviceResolversOf(keys: KeysService, service: ServiceParts): Resolvers {
  const limits: Resolve = () =>
    service.limits && {
      defaultKeyLimits: keys.catalog.defaultLimits,
      failedCredentials: service.limits.failedCredentials,
      request: requestLimitsOf(service.limits.request),
    };

  const policy: Resolve = () => {
    const { maxLifetime, disableUnused, ...others } = keys.catalog.policy;
    return { ...others, maxLifetime: durationOf(maxLifetime), disableUnused: durationOf(disableUnused) };
  };

  const health: Resolve = async () => {
    const { store, answeredInMs, hasSearchIndex, clockBehindMs, hearsChanges } = await keys.health();
    return {
      storeKind: { sqlite: 'SQLITE', postgres: 'POSTGRESQL' }[store],
      storeAnswers: answeredInMs !== undefined,
      answeredInMs,
      hearsChanges,
      searchIndex: hasSearchIndex,
      clockBehind: clockBehindMs / 1000,
    };
  };

  return { Query: { policy, limits, health } };
}

function durationOf(time: number | null): string | null {
  return time === null ? null : formatDuration(time);
}

function requestLimitsOf(budget: BudgetLimits): object {
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
