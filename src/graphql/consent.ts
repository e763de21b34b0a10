import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, withoutUndefined } from '../keys/basics/index.ts';
import type { KeysService } from '../keys/service/index.ts';
import type { GraphQLContext } from './context.ts';
import { badInput, grantsIn, knownTo, refuseNulls } from './resolve.ts';
import type { QueryConsentRequestArgs, Resolvers } from './schema-types.ts';

/** The resolvers for what applications ask for. */
export function consentResolversOf(keys: KeysService): Resolvers {
  const { consent, catalog } = keys;
  const find = ({ userCode, requestId }: QueryConsentRequestArgs, { principal }: GraphQLContext) => {
    if ((userCode == null) === (requestId == null)) throw badInput('Pass either userCode or requestId.');
    if (requestId != null) return consent.findListed(requestId, principal);
    return consent.find({ userCode: userCode!, by: { source: principal.apiKey.id } });
  };

  return {
    Query: {
      consentRequests: (_, { first }, { principal }) => {
        const limit = first ?? DEFAULT_PAGE_SIZE;
        if (limit < 0 || limit > MAX_PAGE_SIZE)
          throw badInput(`"first" is ${limit}; a page has 0 to ${MAX_PAGE_SIZE} requests.`);
        return consent.list(limit, principal);
      },
      consentRequest: (_, which, context) => find(which, context),
    },
    Mutation: {
      approveConsentRequest: async (_, { input }, context) => {
        refuseNulls(input);
        const { userCode, roles, permissions, expiresIn, expiresAt } = input;
        const granted = permissions && grantsIn({ permissions }).permissions;
        const choice = withoutUndefined({ roles, permissions: granted, expiresIn, expiresAt });
        const { request } = await consent.approve(await find({ userCode }, context), choice, context.principal);
        return request;
      },
      denyConsentRequest: async (_, which, context) => consent.deny(await find(which, context), context.principal),
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
