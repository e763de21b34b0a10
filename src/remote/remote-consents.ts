import { type ConsentChoice, validateChosen } from '../keys/consent/approval.ts';
import type { ConsentOperations, ConsentPlace, ConsentState } from '../keys/consent/operator-consents.ts';
import { assertValid } from '../keys/errors.ts';
import { validateExpiry } from '../keys/key/expiry.ts';
import { type Catalog, createCatalog } from '../keys/permissions/catalog.ts';
import type { Data, ServerConnection } from './connection.ts';
import { APPROVE, CONSENT_REQUEST, CONSENT_REQUESTS, DENY } from './documents.ts';
import { grantsIn, timeIn } from './read-key.ts';
import { changeInput } from './write-key.ts';

/** What commands do about applications that ask a running server for keys. */
export class RemoteConsents implements ConsentOperations {
  readonly #connection: ServerConnection;
  readonly #catalog: () => Promise<Catalog>;

  constructor(connection: ServerConnection, catalog: () => Promise<Catalog>) {
    this.#connection = connection;
    this.#catalog = catalog;
  }

  consentRequests(limit: number): Promise<ConsentState[]> {
    const read = ({ consentRequests }: Data) => consentRequests.map(readConsent);
    return this.#connection.ask({ document: CONSENT_REQUESTS, variables: { first: limit }, read });
  }

  consentRequest(place: ConsentPlace): Promise<ConsentState> {
    const read = ({ consentRequest }: Data) => readConsent(consentRequest);
    return this.#connection.ask({ document: CONSENT_REQUEST, variables: { ...place }, read });
  }

  async approveConsentRequest(userCode: string, choice: ConsentChoice): Promise<ConsentState> {
    const isNarrowed = (choice.roles ?? choice.permissions) !== undefined;
    const catalog = isNarrowed ? await this.#catalog() : createCatalog();
    if (isNarrowed) assertValid(validateChosen(choice, catalog));
    assertValid(validateExpiry(choice, Date.now()));
    const variables = { input: { userCode, ...changeInput(choice, catalog) } };
    const read = ({ approveConsentRequest }: Data) => readConsent(approveConsentRequest);
    return this.#connection.ask({ document: APPROVE, variables, read });
  }

  denyConsentRequest(place: ConsentPlace): Promise<ConsentState> {
    const read = ({ denyConsentRequest }: Data) => readConsent(denyConsentRequest);
    return this.#connection.ask({ document: DENY, variables: { ...place }, read });
  }
}

/** Reads what an application asks for, as `Consent` of the documents has it. Whatever is not as it should be throws. */
function readConsent(data: Data): ConsentState {
  const { requestId: id, flow, clientId, clientName, keyExpiresIn, address, status, keyName } = data;
  if (typeof id !== 'string' || typeof clientName !== 'string')
    throw new TypeError('a request without an id and a name');
  return {
    id,
    flow,
    client: { id: clientId, name: clientName },
    ...grantsIn(data.grants),
    keyExpiresIn,
    address,
    createdAt: timeIn(data.createdAt)!,
    expiresAt: timeIn(data.expiresAt)!,
    status,
    approval:
      keyName === null ? null : { keyName, ...grantsIn(data.keyGrants), keyExpiresAt: timeIn(data.keyExpiresAt) },
  };
}
