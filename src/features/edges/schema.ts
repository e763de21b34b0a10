import { readFileSync } from 'node:fs';
import { operationsOn } from '../../keys/operations/index.ts';
import type { KeysService } from '../../keys/service/index.ts';
import { edgeOperations } from './operations.ts';
import type { Resolvers } from './schema-types.ts';

export const typeDefs = readFileSync(new URL('./schema.graphql', import.meta.url), 'utf8');

/** The resolvers for edges. */
export function resolvers(keys: KeysService): Resolvers {
  const does = operationsOn(keys, edgeOperations.operations);
  return {
    Query: {
      edges: async (_, _args, { principal }) => {
        const edges = await does.edges({}, principal);
        return edges.map(({ id: edgeId, key, ...edge }) => ({ ...edge, edgeId, keyId: key.id, keyName: key.name }));
      },
    },
  };
}
