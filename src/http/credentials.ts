import { checkCredentialPlaces, type CredentialPlace } from '../keys/credential-places.ts';
import { type Authorization, readAuthorization, type Schemes } from './authorization-header.ts';

/** The headers of a request. */
export interface HeaderValues {
  /** The value of a header by its name in lower case, several of them joined with commas; undefined without one. */
  header(name: string): string | undefined;
}

/**
 * The credentials of a request, and the headers in which they stand. `none` has a header where that is Basic
 * authentication without a password. Two headers of one name are `malformed`, two places that hold something `several`.
 */
export type Credentials =
  | { readonly kind: 'token'; readonly token: string; readonly headers: readonly string[] }
  | { readonly kind: 'none' | 'malformed' | 'several'; readonly headers: readonly string[] };

const AUTHORIZATION = ['authorization'];
const NONE: Credentials = { kind: 'none', headers: [] };
/** One run of visible ASCII, as bearer tokens. Two headers, joined by a comma and a space, do not match. */
const KEY = /^[\x21-\x7e]+$/;

/** Reads credentials where the operator lets them stand, and nowhere else. */
export class CredentialReader {
  readonly places: readonly CredentialPlace[];
  readonly #schemes: Schemes;
  readonly #headers: readonly string[];

  /** @throws RangeError if a place is invalid */
  constructor(places: readonly CredentialPlace[]) {
    this.places = checkCredentialPlaces(places);
    this.#schemes = { bearer: this.places.includes('bearer'), basic: this.places.includes('basic') };
    this.#headers = this.places.flatMap((place) => (typeof place === 'string' ? [] : place.header));
  }

  /** Finds the credentials of a request. */
  read(request: HeaderValues): Credentials {
    const { bearer, basic } = this.#schemes;
    let found = NONE;
    if (bearer || basic) {
      const value = request.header('authorization');
      if (value !== undefined) found = inAuthorization(readAuthorization(value, this.#schemes));
    }
    for (const header of this.#headers) {
      const value = request.header(header);
      if (value === undefined) continue;
      if (found !== NONE) found = { kind: 'several', headers: [...found.headers, header] };
      else if (KEY.test(value)) found = { kind: 'token', token: value, headers: [header] };
      else found = { kind: 'malformed', headers: [header] };
    }
    return found;
  }
}

function inAuthorization(read: Authorization): Credentials {
  if (read === 'none') return NONE;
  if (read === 'malformed') return { kind: 'malformed', headers: AUTHORIZATION };
  const { token } = read;
  return token === undefined
    ? { kind: 'none', headers: AUTHORIZATION }
    : { kind: 'token', token, headers: AUTHORIZATION };
}
