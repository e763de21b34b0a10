/** The credentials in an Authorization header. */
export type Credentials = { token: string } | 'none' | 'malformed';

/** The scheme, spaces, and one run of visible ASCII. Two headers, joined by a comma and a space, do not match. */
const BEARER = /^bearer +([\x21-\x7e]+)$/i;
/** Credentials of another scheme (RFC 9110, section 11.4): its name, spaces, and something. */
const OTHER_SCHEME = /^(?!bearer(?: |$))[!#$%&'*+.^_`|~0-9a-z-]+ +[\x20-\x7e]+$/i;

/** The start of a second header: a comma, then nothing or a scheme with credentials. A parameter would have a "=". */
const SECOND_HEADER = /, *(?:$|[!#$%&'*+.^_`|~0-9a-z-]+ +[^= ])/i;

/**
 * Parses the bearer token in an Authorization header (RFC 6750, section 2.1). Another scheme counts as no credentials.
 * Several headers, which `Headers` joins with commas, are malformed.
 */
export function readCredentials(header: string | null | undefined): Credentials {
  if (header == null) return 'none';
  const token = BEARER.exec(header)?.[1];
  if (token !== undefined) return { token };
  return OTHER_SCHEME.test(header) && !SECOND_HEADER.test(header.replaceAll(/"[^"]*"/g, '')) ? 'none' : 'malformed';
}
