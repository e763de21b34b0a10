import { granted, permissionsOf, rolesOf } from '../../remote/requests.ts';
import {
  around,
  list,
  mapped,
  mutation,
  nullable,
  object,
  of,
  query,
  type Shape,
  text,
  time,
  word,
} from '../../remote/shape.ts';
import type { ConsentState } from './consent.ts';

const approval = mapped(
  object({
    keyName: nullable(text),
    roles: of('keyGrants', nullable(rolesOf)),
    permissions: of('keyGrants', nullable(permissionsOf)),
    keyExpiresAt: nullable(time),
  }),
  ({ keyName, roles, permissions: allowed, keyExpiresAt }) =>
    keyName === null ? null : { keyName, roles: roles ?? [], permissions: allowed ?? [], keyExpiresAt },
);

const consent: Shape<ConsentState> = object({
  id: of('requestId', text),
  flow: word<ConsentState['flow']>(),
  client: around({ id: of('clientId', text), name: of('clientName', text) }),
  audience: nullable(text),
  ...granted,
  keyExpiresIn: nullable(text),
  address: nullable(text),
  createdAt: time,
  expiresAt: time,
  status: word<ConsentState['status']>(),
  approval: of('', approval),
});

const PLACE = { userCode: 'String', requestId: 'ID' };

/** The requests to servers. */
export const REQUESTS = {
  consentRequests: query('consentRequests', { first: 'Int!' }, list(consent)),
  consentRequest: query('consentRequest', PLACE, consent),
  approveConsentRequest: mutation('approveConsentRequest', { input: 'ApproveConsentRequestInput!' }, consent),
  denyConsentRequest: mutation('denyConsentRequest', PLACE, consent),
};
