import { readFileSync } from 'node:fs';
import { operationsOn } from '../../keys/operations/index.ts';
import type { KeysService } from '../../keys/service/index.ts';
import { usageOperations } from './operations.ts';
import type { Resolvers } from './schema-types.ts';
import { Usage } from './usage.ts';

export const typeDefs = readFileSync(new URL('./schema.graphql', import.meta.url), 'utf8');

/** The resolvers for how requests ended. */
export function resolvers(keys: KeysService): Resolvers {
  const does = operationsOn(keys, usageOperations);
  return {
    Query: {
      serviceUsage: async (_, request, { principal }) => (await does.serviceUsage({ request }, principal)).periods,
    },
    ApiKey: {
      usage: ({ id }, request, { budget }) =>
        budget.inSequence(async () => (await keys.feature(Usage).byPeriod(id, request)).periods),
    },
  };
}
