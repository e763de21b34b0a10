import { type Actor, OPERATOR } from '../../keys/authorization/index.ts';
import { withoutUndefined } from '../../keys/basics/index.ts';
import { changing, reading } from '../../keys/operations/index.ts';
import type { ConsentRequest } from './consent-request.ts';
import type { KeysService } from '../../keys/service/index.ts';
import type { ConsentChoice } from './approval.ts';
import { Consent, type ConsentPlace, type ConsentState } from './consent.ts';

/** The operations on requests of applications, and how a server is asked for them. */
export const consentOperations = {
  operations: {
    consentRequests: reading({
      needs: 'API_KEY:CREATE_ANY',
      does: 'Open requests of applications for keys, oldest first.',
      run: (keys, { first }: { first: number }, actor): Promise<ConsentState[]> =>
        keys.feature(Consent).list(first, actor),
    }),
    consentRequest: reading({
      needs: 'API_KEY:CREATE_OWN',
      does: 'One request of an application. Each key can try only a few codes. requestId requires CREATE_ANY.',
      run: (keys, { place }: { place: ConsentPlace }, actor): Promise<ConsentState> => findConsent(keys, place, actor),
    }),
    approveConsentRequest: changing({
      needs: 'API_KEY:CREATE_OWN',
      does:
        'Approves a request of an application, or a part of it. The application gets a key created by the caller, by the ' +
        'rules of createApiKey, which are checked again when it fetches that key. Approving the same again ' +
        'changes nothing.',
      run: async (
        keys,
        { userCode, choice }: { userCode: string; choice: ConsentChoice },
        actor,
      ): Promise<ConsentState> =>
        (
          await keys
            .feature(Consent)
            .approve(await findConsent(keys, { userCode }, actor), withoutUndefined(choice), actor)
        ).request,
    }),
    denyConsentRequest: changing({
      needs: 'API_KEY:CREATE_OWN',
      does: 'Denies a request of an application. Can be repeated. requestId requires CREATE_ANY.',
      run: async (keys, { place }: { place: ConsentPlace }, actor): Promise<ConsentState> =>
        keys.feature(Consent).deny(await findConsent(keys, place, actor), actor),
    }),
  },
  remote: () => import('./remote.ts'),
};

/** The source of tries of codes where the operator decides. */
const TERMINAL = 'terminal';

function findConsent(keys: KeysService, place: ConsentPlace, actor: Actor): Promise<ConsentRequest> {
  const consent = keys.feature(Consent);
  if ('requestId' in place) return consent.findListed(place.requestId, actor);
  return consent.find({ ...place, by: { source: actor === OPERATOR ? TERMINAL : actor.apiKey.id } });
}
