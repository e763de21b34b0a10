import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../keys/page.ts';
import type { Role } from '../keys/permissions/catalog.ts';
import type { ResourceActions } from '../keys/permissions/permission-set.ts';
import type { ConsentRequest } from '../keys/requests/consent-request.ts';
import type { KeysService } from '../keys/service.ts';
import type { GraphQLContext } from './context.ts';
import type { Resolvers } from './extension.ts';
import { refuseNulls } from './nulls.ts';
import { badInput, knownTo, type Resolve } from './resolve.ts';

interface ApprovalInput {
  userCode: string;
  roles?: Role[];
  permissions?: ResourceActions[];
  expiresAt?: string;
}

/** The resolvers for what applications ask for. */
export function consentResolversOf(keys: KeysService): Resolvers {
  const { consent, catalog } = keys;
  const show = (userCode: string, { principal }: GraphQLContext) =>
    consent.show({ userCode, source: principal.key.id });

  const consentRequests: Resolve<{ first?: number | null }> = (_, { first }, { principal }) => {
    const limit = first ?? DEFAULT_PAGE_SIZE;
    if (limit < 0 || limit > MAX_PAGE_SIZE)
      throw badInput(`"first" is ${limit}; a page has 0 to ${MAX_PAGE_SIZE} requests.`);
    return consent.list(limit, principal);
  };
  const consentRequest: Resolve<{ userCode: string }> = (_, { userCode }, context) => show(userCode, context);

  const approveConsentRequest: Resolve<{ input: ApprovalInput }> = async (_, { input }, context) => {
    refuseNulls(input);
    const { userCode, roles, permissions, expiresAt } = input;
    const granted = permissions?.flatMap(({ resource, actions }) => actions.map((action) => `${resource}:${action}`));
    const choice = { roles, permissions: granted, expiresAt };
    const { request } = await consent.approve(await show(userCode, context), choice, context.principal);
    return request;
  };
  const denyConsentRequest: Resolve<{ userCode?: string | null; requestId?: string | null }> = async (
    _,
    { userCode, requestId },
    context,
  ) => {
    if ((userCode == null) === (requestId == null)) throw badInput('Pass either userCode or requestId.');
    if (requestId != null) return consent.denyListed(requestId, context.principal);
    return consent.deny(await show(userCode!, context), context.principal);
  };

  return {
    Query: { consentRequests, consentRequest },
    Mutation: { approveConsentRequest, denyConsentRequest },
    ConsentRequest: {
      requestId: ({ id }: ConsentRequest) => id,
      clientId: ({ client }: ConsentRequest) => client.id,
      clientName: ({ client }: ConsentRequest) => client.name,
      roles: ({ roles }: ConsentRequest) => roles.filter((role) => catalog.knows(role)),
      permissions: ({ permissions }: ConsentRequest) => knownTo(catalog, permissions),
      keyName: ({ approval }: ConsentRequest) => approval?.keyName,
    },
  };
}
