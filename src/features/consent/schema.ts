import { readFileSync } from 'node:fs';
import { badInput, grantsIn, knownTo, refuseNulls } from '../../graphql/index.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, withoutUndefined } from '../../keys/basics/index.ts';
import { operationsOn } from '../../keys/operations/index.ts';
import type { KeysService } from '../../keys/service/index.ts';
import type { ConsentPlace } from './consent.ts';
import { consentOperations } from './operations.ts';
import type { QueryConsentRequestArgs, Resolvers } from './schema-types.ts';

export const typeDefs = readFileSync(new URL('./schema.graphql', import.meta.url), 'utf8');

/** The resolvers for requests of applications. */
export function resolvers(keys: KeysService): Resolvers {
  const { catalog } = keys;
  const does = operationsOn(keys, consentOperations.operations);
  const placeIn = ({ userCode, requestId }: QueryConsentRequestArgs): ConsentPlace => {
    if ((userCode == null) === (requestId == null)) throw badInput('Pass either userCode or requestId.');
    return requestId == null ? { userCode: userCode! } : { requestId };
  };

  return {
    Query: {
      consentRequests: (_, { first }, { principal }) => {
        const limit = first ?? DEFAULT_PAGE_SIZE;
        if (limit < 0 || limit > MAX_PAGE_SIZE)
          throw badInput(`"first" is ${limit}; a page has 0 to ${MAX_PAGE_SIZE} requests.`);
        return does.consentRequests({ first: limit }, principal);
      },
      consentRequest: (_, which, { principal }) => does.consentRequest({ place: placeIn(which) }, principal),
    },
    Mutation: {
      approveConsentRequest: async (_, { input }, { principal }) => {
        refuseNulls(input);
        const { userCode, roles, permissions, expiresIn, expiresAt } = input;
        const granted = permissions && grantsIn({ permissions }).permissions;
        const choice = withoutUndefined({ roles, permissions: granted, expiresIn, expiresAt });
        return does.approveConsentRequest({ userCode, choice }, principal);
      },
      denyConsentRequest: (_, which, { principal }) => does.denyConsentRequest({ place: placeIn(which) }, principal),
    },
    ConsentRequest: {
      requestId: ({ id }) => id,
      clientId: ({ client }) => client.id,
      clientName: ({ client }) => client.name,
      roles: ({ roles }) => roles.filter((role) => catalog.knows(role)),
      permissions: ({ permissions }) => knownTo(catalog, permissions),
      grants: ({ roles, permissions }) => [...roles, ...permissions],
      keyName: ({ approval }) => approval?.keyName,
      keyGrants: ({ approval }) => approval && [...approval.roles, ...approval.permissions],
      keyExpiresAt: ({ approval }) => approval?.keyExpiresAt,
    },
  };
}
