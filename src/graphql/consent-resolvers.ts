import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../keys/page.ts';
import type { Role } from '../keys/permissions/catalog.ts';
import type { ResourceActions } from '../keys/permissions/permission-set.ts';
import type { ConsentRequest } from '../keys/requests/consent-request.ts';
import { withoutUndefined } from '../keys/options.ts';
import type { KeysService } from '../keys/service.ts';
import type { GraphQLContext } from './context.ts';
import type { Resolvers } from './extension.ts';
import { refuseNulls } from './nulls.ts';
import { badInput, knownTo, type Resolve } from './resolve.ts';

interface ApprovalInput {
  userCode: string;
  roles?: Role[];
  permissions?: ResourceActions[];
  expiresIn?: string;
  expiresAt?: string;
}

/** Which request: by its code, or by its id. */
interface Which {
  userCode?: string | null;
  requestId?: string | null;
}

/** The resolvers for what applications ask for. */
export function consentResolversOf(keys: KeysService): Resolvers {
  const { consent, catalog } = keys;
  const find = ({ userCode, requestId }: Which, { principal }: GraphQLContext) => {
    if ((userCode == null) === (requestId == null)) throw badInput('Pass either userCode or requestId.');
    if (requestId != null) return consent.findListed(requestId, principal);
    return consent.find({ userCode: userCode!, by: { source: principal.apiKey.id } });
  };

  const consentRequests: Resolve<{ first?: number | null }> = (_, { first }, { principal }) => {
    const limit = first ?? DEFAULT_PAGE_SIZE;
    if (limit < 0 || limit > MAX_PAGE_SIZE)
      throw badInput(`"first" is ${limit}; a page has 0 to ${MAX_PAGE_SIZE} requests.`);
    return consent.list(limit, principal);
  };
  const consentRequest: Resolve<Which> = (_, which, context) => find(which, context);

  const approveConsentRequest: Resolve<{ input: ApprovalInput }> = async (_, { input }, context) => {
    refuseNulls(input);
    const { userCode, roles, permissions, expiresIn, expiresAt } = input;
    const granted = permissions?.flatMap(({ resource, actions }) => actions.map((action) => `${resource}:${action}`));
    const choice = withoutUndefined({ roles, permissions: granted, expiresIn, expiresAt });
    const { request } = await consent.approve(await find({ userCode }, context), choice, context.principal);
    return request;
  };
  const denyConsentRequest: Resolve<Which> = async (_, which, context) =>
    consent.deny(await find(which, context), context.principal);

  return {
    Query: { consentRequests, consentRequest },
    Mutation: { approveConsentRequest, denyConsentRequest },
    ConsentRequest: {
      requestId: ({ id }: ConsentRequest) => id,
      clientId: ({ client }: ConsentRequest) => client.id,
      clientName: ({ client }: ConsentRequest) => client.name,
      roles: ({ roles }: ConsentRequest) => roles.filter((role) => catalog.knows(role)),
      permissions: ({ permissions }: ConsentRequest) => knownTo(catalog, permissions),
      grants: ({ roles, permissions }: ConsentRequest) => [...roles, ...permissions],
      keyName: ({ approval }: ConsentRequest) => approval?.keyName,
      keyGrants: ({ approval }: ConsentRequest) => approval && [...approval.roles, ...approval.permissions],
      keyExpiresAt: ({ approval }: ConsentRequest) => approval?.keyExpiresAt,
    },
  };
}
