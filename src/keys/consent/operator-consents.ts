import { OPERATOR } from '../authorization/principal.ts';
import { withoutUndefined } from '../options.ts';
import type { ConsentApproval, ConsentRequest } from '../requests/consent-request.ts';
import type { ConsentChoice } from './approval.ts';
import type { Consent } from './consent.ts';

/** What an application asks for, as whoever decides sees it. */
export interface ConsentState extends Pick<
  ConsentRequest,
  'id' | 'flow' | 'client' | 'status' | 'roles' | 'permissions' | 'keyExpiresIn' | 'address' | 'createdAt' | 'expiresAt'
> {
  /** The key that it gets. */
  readonly approval: Pick<ConsentApproval, 'keyName' | 'roles' | 'permissions' | 'keyExpiresAt'> | null;
}

/** A request of an application: by the code that it shows, or by its id. */
export type ConsentPlace = { readonly userCode: string } | { readonly requestId: string };

/** What commands do about applications that ask for keys. */
export interface ConsentOperations {
  /** What applications ask for, and have not got yet, oldest first. */
  list(limit: number): Promise<ConsentState[]>;
  /** What was asked for, whatever was decided. */
  find(place: ConsentPlace): Promise<ConsentState>;
  approve(userCode: string, choice: ConsentChoice): Promise<ConsentState>;
  deny(place: ConsentPlace): Promise<ConsentState>;
}

/** Where the operator tries codes. */
const TERMINAL = 'terminal';

/** What the operator of a store does about them. */
export class OperatorConsents implements ConsentOperations {
  readonly #consent: Consent;

  constructor({ consent }: { readonly consent: Consent }) {
    this.#consent = consent;
  }

  list(limit: number): Promise<ConsentRequest[]> {
    return this.#consent.list(limit, OPERATOR);
  }

  find(place: ConsentPlace): Promise<ConsentRequest> {
    const consent = this.#consent;
    if ('requestId' in place) return consent.findListed(place.requestId, OPERATOR);
    return consent.find({ ...place, by: { source: TERMINAL } });
  }

  async approve(userCode: string, choice: ConsentChoice): Promise<ConsentRequest> {
    const found = await this.find({ userCode });
    return (await this.#consent.approve(found, withoutUndefined(choice), OPERATOR)).request;
  }

  async deny(place: ConsentPlace): Promise<ConsentRequest> {
    return this.#consent.deny(await this.find(place), OPERATOR);
  }
}
