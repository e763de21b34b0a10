import { readFileSync } from 'node:fs';
import { badInput } from '../../graphql/index.ts';
import { operationsOn } from '../../keys/operations/index.ts';
import type { KeysService } from '../../keys/service/index.ts';
import { containOperations } from './operations.ts';
import type { Resolvers } from './schema-types.ts';

export const typeDefs = readFileSync(new URL('./schema.graphql', import.meta.url), 'utf8');

/** The resolver for containing keys. */
export function resolvers(keys: KeysService): Resolvers {
  const does = operationsOn(keys, containOperations.operations);
  return {
    Mutation: {
      containKey: async (_, { input: { id, name, since, dryRun } }, { principal }) => {
        if ((id == null) === (name == null)) throw badInput('Pass either the id or the name of the key.');
        const asked = { key: id ?? name!, since: since ?? undefined, dryRun: dryRun ?? false };
        const { apiKey, exists, issued, changes, requests } = await does.containKey(asked, principal);
        return {
          keyId: apiKey.id,
          name: apiKey.name,
          exists,
          issued,
          changes: changes.map(({ id: keyId, changes: fields = [], ...change }) => ({
            ...change,
            keyId,
            changes: fields.map(({ field, before, after }) => ({
              field,
              before: JSON.stringify(before),
              after: JSON.stringify(after),
            })),
          })),
          requests: requests.map(({ id: requestId, client: clientName, keyName }) => ({
            requestId,
            clientName,
            keyName,
          })),
        };
      },
    },
  };
}
