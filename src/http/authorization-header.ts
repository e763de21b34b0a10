import { hasOwnForm } from '../keys/secret/secret.ts';

/** What an Authorization header holds: a token, which Basic authentication may leave out, or nothing for us. */
export type Authorization = { readonly token: string | undefined } | 'none' | 'malformed';

/** The schemes that are read. */
export interface Schemes {
  readonly bearer: boolean;
  readonly basic: boolean;
}

/** The scheme, spaces, and one run of visible ASCII. Two headers, joined by a comma and a space, do not match. */
const BEARER = /^bearer +([\x21-\x7e]+)$/i;
/** Credentials of any scheme (RFC 9110, section 11.4): its name, spaces, and something. */
const CREDENTIALS = /^([!#$%&'*+.^_`|~0-9a-z-]+) +([\x21-\x7e][\x20-\x7e]*)$/i;
/** The start of a second header: a comma, then nothing or a scheme with credentials. A parameter would have a "=". */
const SECOND_HEADER = /, *(?:$|[!#$%&'*+.^_`|~0-9a-z-]+ +[^= ])/i;
const BASE64 = /^[a-z0-9+/]+={0,2}$/i;
// oxlint-disable-next-line no-control-regex -- RFC 7617 excludes them
const CONTROL = /[\x00-\x1f\x7f]/;

/**
 * Reads an Authorization header: a bearer token (RFC 6750, section 2.1), or the password of Basic authentication (RFC
 * 7617) under any user name. Schemes that are not to be read count as none. Several headers, which are joined with
 * commas, are malformed, whatever their schemes.
 */
export function readAuthorization(header: string, schemes: Schemes): Authorization {
  const token = schemes.bearer ? BEARER.exec(header)?.[1] : undefined;
  if (token !== undefined) return { token };
  const [, scheme, rest = ''] = CREDENTIALS.exec(header) ?? [];
  if (scheme === undefined || SECOND_HEADER.test(rest.replaceAll(/"[^"]*"/g, ''))) return 'malformed';
  switch (scheme.toLowerCase()) {
    case 'bearer':
      return schemes.bearer ? 'malformed' : 'none';
    case 'basic':
      return schemes.basic ? readBasic(rest) : 'none';
    default:
      return 'none';
  }
}

/** The password alone: user names show in the logs of proxies, so that a key is never read from one. */
function readBasic(encoded: string): Authorization {
  const bytes = Buffer.from(encoded, 'base64');
  if (!BASE64.test(encoded) || bytes.toString('base64') !== encoded) return 'malformed';
  const text = decode(bytes);
  const colon = text.indexOf(':');
  if (colon === -1 || CONTROL.test(text)) return 'malformed';
  return { token: withoutEscapes(text.slice(colon + 1)) || undefined };
}

/** Clients of OAuth escape passwords (RFC 6749, section 2.3.1), some of them even the underscores of our own keys. */
function withoutEscapes(password: string): string {
  if (!password.includes('%')) return password;
  const plain = password.replaceAll(/%5f/gi, '_');
  return hasOwnForm(plain) ? plain : password;
}

/** Older clients send Latin-1: a user name may then be no UTF-8. */
function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return bytes.toString('latin1');
  }
}
