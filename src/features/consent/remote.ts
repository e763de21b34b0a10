import { assertValid } from '../../keys/basics/index.ts';
import { validateExpiry } from '../../keys/key/index.ts';
import type { Server } from '../../keys/operations/index.ts';
import { createCatalog } from '../../keys/permissions/index.ts';
import { changeInput } from '../../remote/inputs.ts';
import { type ConsentChoice, validateChosen } from './approval.ts';
import type { ConsentPlace, ConsentState } from './consent.ts';
import { REQUESTS } from './requests.ts';

export const consentRequests = (server: Server, page: { first: number }): Promise<ConsentState[]> =>
  server.ask(REQUESTS.consentRequests, page);

export const consentRequest = (server: Server, { place }: { place: ConsentPlace }): Promise<ConsentState> =>
  server.ask(REQUESTS.consentRequest, place);

export async function approveConsentRequest(
  server: Server,
  { userCode, choice }: { userCode: string; choice: ConsentChoice },
): Promise<ConsentState> {
  const isNarrowed = (choice.roles ?? choice.permissions) !== undefined;
  const catalog = isNarrowed ? await server.permissions() : createCatalog();
  if (isNarrowed) assertValid(validateChosen(choice, catalog));
  assertValid(validateExpiry(choice, Date.now()));
  return server.ask(REQUESTS.approveConsentRequest, { input: { userCode, ...changeInput(choice, catalog) } });
}

export const denyConsentRequest = (server: Server, { place }: { place: ConsentPlace }): Promise<ConsentState> =>
  server.ask(REQUESTS.denyConsentRequest, place);
