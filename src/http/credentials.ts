import {
  checkCredentialPlaces,
  type CredentialPlace,
  hasOwnForm,
  holdsSecret,
  readSecret,
} from '../keys/secret/index.ts';
import { formatList } from '../keys/basics/index.ts';

/** The headers of a request. */
export interface HeaderValues {
  /** The value of a header by its name in lower case, several of them joined with commas; undefined without one. */
  header(name: string): string | undefined;
}

/**
 * The credentials of a request, and the headers with them. `none` has a header for Basic authentication without a
 * password. Two headers of the same name are `malformed`. Credentials in two places are `several`, unless exactly one
 * of them has the form of our own keys.
 */
export type Credentials =
  | { readonly kind: 'token'; readonly token: string; readonly headers: readonly string[] }
  | { readonly kind: 'none' | 'malformed' | 'several'; readonly headers: readonly string[] };

const AUTHORIZATION = ['authorization'];
const NONE: Credentials = { kind: 'none', headers: [] };
const MALFORMED: Credentials = { kind: 'malformed', headers: AUTHORIZATION };

/** The accepted schemes. */
interface Schemes {
  readonly bearer: boolean;
  readonly basic: boolean;
}

/** The scheme, spaces, and one run of visible ASCII. Two headers, joined by a comma and a space, do not match. */
const BEARER = /^bearer +([\x21-\x7e]+)$/i;
/** Credentials of any scheme (RFC 9110, section 11.4): its name, spaces, and a value. */
const CREDENTIALS = /^([!#$%&'*+.^_`|~0-9a-z-]+) +([\x21-\x7e][\x20-\x7e]*)$/i;
/** The start of a second header: a comma, then nothing or a scheme with credentials. A parameter would have a "=". */
const SECOND_HEADER = /, *(?:$|[!#$%&'*+.^_`|~0-9a-z-]+ +[^= ])/i;
const BASE64 = /^[a-z0-9+/]+={0,2}$/i;
// oxlint-disable-next-line no-control-regex -- RFC 7617 excludes them
const CONTROL = /[\x00-\x1f\x7f]/;

/**
 * Reads an Authorization header: a bearer token (RFC 6750, section 2.1), or the password of Basic authentication (RFC
 * 7617) with any user name. Schemes that are not accepted count as none. Several headers, joined with commas, are
 * malformed, whatever their schemes.
 */
function readAuthorization(header: string, schemes: Schemes): Credentials {
  const token = schemes.bearer ? BEARER.exec(header)?.[1] : undefined;
  if (token !== undefined) return { kind: 'token', token, headers: AUTHORIZATION };
  const [, scheme, rest = ''] = CREDENTIALS.exec(header) ?? [];
  if (scheme === undefined || SECOND_HEADER.test(rest.replaceAll(/"[^"]*"/g, ''))) return MALFORMED;
  switch (scheme.toLowerCase()) {
    case 'bearer':
      return schemes.bearer ? MALFORMED : NONE;
    case 'basic':
      return schemes.basic ? readBasic(rest) : NONE;
    default:
      return NONE;
  }
}

/** Reads only the password: a key is never read from a user name, which proxies log. */
function readBasic(encoded: string): Credentials {
  const bytes = Buffer.from(encoded, 'base64');
  if (!BASE64.test(encoded) || bytes.toString('base64') !== encoded) return MALFORMED;
  const text = decode(bytes);
  const colon = text.indexOf(':');
  if (colon === -1 || CONTROL.test(text)) return MALFORMED;
  const token = withoutEscapes(text.slice(colon + 1));
  return token === '' ? { kind: 'none', headers: AUTHORIZATION } : { kind: 'token', token, headers: AUTHORIZATION };
}

/** OAuth clients escape passwords (RFC 6749, section 2.3.1), some even the underscores of our own keys. */
function withoutEscapes(password: string): string {
  if (!password.includes('%')) return password;
  const plain = password.replaceAll(/%5f/gi, '_');
  return isOurs(plain) ? plain : password;
}

/** True for the form of our keys. An earlier prefix of the installation is not known, so its checksum must be right. */
function isOurs(token: string): boolean {
  return hasOwnForm(token) || readSecret(token) !== undefined;
}

/** Older clients send Latin-1, in which a user name can be invalid UTF-8. */
function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return bytes.toString('latin1');
  }
}

/** One run of visible ASCII, like bearer tokens. Two headers, joined by a comma and a space, do not match. */
const KEY = /^[\x21-\x7e]+$/;

/** Reads credentials from the places that the operator allows, and from no others. */
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
    const others: Credentials[] = [];
    if (bearer || basic) {
      const value = request.header('authorization');
      if (value !== undefined) found = readAuthorization(value, this.#schemes);
    }
    for (const header of this.#headers) {
      const value = request.header(header);
      if (value === undefined) continue;
      if (found !== NONE) others.push(found);
      if (KEY.test(value)) found = { kind: 'token', token: value, headers: [header] };
      else found = { kind: 'malformed', headers: [header] };
    }
    return others.length === 0 ? found : onlyOwn([...others, found], request);
  }

  /** True if the key of a request is the password of Basic authentication. */
  isByBasic(request: HeaderValues): boolean {
    if (!this.#schemes.basic || !/^basic /i.test(request.header('authorization') ?? '')) return false;
    const { kind, headers } = this.read(request);
    return kind === 'token' && headers === AUTHORIZATION;
  }
}

/** From credentials in several places, the only one with a key of ours; or all, if there is no such one. */
function onlyOwn(found: readonly Credentials[], request: HeaderValues): Credentials {
  const own = found.filter((each) =>
    each.kind === 'token' ? isOurs(each.token) : holdsSecret(request.header(each.headers[0]!)!),
  );
  const isClear = own.length === 1 && own[0]!.kind === 'token';
  return isClear ? own[0]! : { kind: 'several', headers: found.flatMap(({ headers }) => headers) };
}

/** Why a request is refused (RFC 6750, section 3.1). */
export type Problem = 'invalid_request' | 'invalid_token' | 'insufficient_scope';

/** Tells a refused client how to send a key. */
export class Challenge {
  readonly #places: readonly CredentialPlace[];
  readonly #realm: string;

  constructor(places: readonly CredentialPlace[], realm: string) {
    this.#places = places;
    this.#realm = realm;
  }

  /**
   * `WWW-Authenticate`; undefined if it has nothing to offer. Basic is offered when other credentials would help, and
   * comes first: some clients only look at the first of several challenges.
   * @param more parameters besides the problem, such as `scope="…"`
   */
  headers(problem?: Problem, more = ''): { 'WWW-Authenticate': string } | undefined {
    const offers: string[] = [];
    const mayHelp = problem === undefined || problem === 'invalid_token';
    if (mayHelp && this.#places.includes('basic')) offers.push(`Basic realm="${this.#realm}", charset="UTF-8"`);
    const error = `${problem ? `, error="${problem}"` : ''}${more}`;
    if (this.#places.includes('bearer')) offers.push(`Bearer realm="${this.#realm}"${error}`);
    // Every 401 needs a challenge (RFC 9110, section 15.5.2), and no scheme is registered for such headers.
    else if (!this.#places.includes('basic')) offers.push(`ApiKey realm="${this.#realm}"${error}`);
    return offers.length > 0 ? { 'WWW-Authenticate': offers.join(', ') } : undefined;
  }

  /** The message without a key. */
  get missing(): string {
    return `Missing API key: send it ${formatList(this.#places.map(describePlace), 'or')}.`;
  }

  /** The message for a malformed header. */
  malformed(header: string): string {
    if (header !== 'authorization')
      return `The ${header} header is malformed: send exactly one, with only the API key.`;
    const forms = this.#places.flatMap((place) => {
      if (place === 'bearer') return '"Bearer <API key>"';
      return place === 'basic' ? '"Basic <base64 of user:API key>"' : [];
    });
    return `The Authorization header is malformed: send exactly one, as ${formatList(forms, 'or')}.`;
  }

  /** The message for several credentials. */
  several(headers: readonly string[]): string {
    return `There are credentials in several headers (${headers.join(', ')}): send the API key in one of them.`;
  }
}

function describePlace(place: CredentialPlace): string {
  if (place === 'bearer') return 'as "Authorization: Bearer <API key>"';
  return place === 'basic' ? 'as the password of Basic authentication' : `as "${place.header}: <API key>"`;
}
