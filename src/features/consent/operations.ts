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
      does: 'What applications ask for, and have not got yet, oldest first.',
      run: (keys, { first }: { first: number }, actor): Promise<ConsentState[]> =>
        keys.feature(Consent).list(first, actor),
    }),
    consentRequest: reading({
      needs: 'API_KEY:CREATE_OWN',
      does: 'What one application asks for. A key has only so many tries of codes. By requestId, with CREATE_ANY alone.',
      run: (keys, { place }: { place: ConsentPlace }, actor): Promise<ConsentState> => findConsent(keys, place, actor),
    }),
    approveConsentRequest: changing({
      needs: 'API_KEY:CREATE_OWN',
      does:
        'Agrees to what an application asks for, or to a part of it. The application gets a key that the caller has ' +
        'created, by the rules of createApiKey, which count again when it fetches that key. To agree to the same again ' +
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
      does: 'Refuses what an application asks for, also again. By requestId, with CREATE_ANY alone.',
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
