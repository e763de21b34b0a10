/** What an Authorization header holds. */
export type Credentials = { token: string } | 'none' | 'malformed';

/** A scheme, and behind spaces one run of visible ASCII. Two headers, joined by a comma and a space, do not fit. */
const BEARER = /^bearer +([\x21-\x7e]+)$/i;
/** Credentials of any scheme (RFC 9110, section 11.4): its name, and behind spaces something. */
const OTHER_SCHEME = /^(?!bearer(?: |$))[!#$%&'*+.^_`|~0-9a-z-]+ +[\x20-\x7e]+$/i;

/** Where a second header begins: nothing behind the comma, or a scheme with its credentials. A parameter has its "=" there. */
const SECOND_HEADER = /, *(?:$|[!#$%&'*+.^_`|~0-9a-z-]+ +[^= ])/i;

/**
 * Reads the bearer token of an Authorization header (RFC 6750, section 2.1). Another scheme counts as no credentials. The
 * value may hold several headers, joined by a comma as `Headers` joins them: that is malformed.
 */
export function readCredentials(header: string | null | undefined): Credentials {
  if (header == null) return 'none';
  const token = BEARER.exec(header)?.[1];
  if (token !== undefined) return { token };
  return OTHER_SCHEME.test(header) && !SECOND_HEADER.test(header.replaceAll(/"[^"]*"/g, '')) ? 'none' : 'malformed';
}
