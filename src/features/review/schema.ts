import { readFileSync } from 'node:fs';
import { badInput } from '../../graphql/index.ts';
import { operationsOn } from '../../keys/operations/index.ts';
import type { KeysService } from '../../keys/service/index.ts';
import { reviewOperations } from './operations.ts';
import type { Resolvers } from './schema-types.ts';

export const typeDefs = readFileSync(new URL('./schema.graphql', import.meta.url), 'utf8');

/** The resolvers for reviews. */
export function resolvers(keys: KeysService): Resolvers {
  const does = operationsOn(keys, reviewOperations.operations);
  return {
    Mutation: {
      attestReview: async (_, { input }, { principal }) => {
        if (input.keys < 0) throw badInput(`The number of keys is ${input.keys}. It must be at least 0.`);
        await does.attestReview({ input }, principal);
        return true;
      },
    },
  };
}
