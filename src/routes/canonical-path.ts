import type { Canonical } from './canonical.ts';

/** Characters that stand for themselves, encoded or not. */
const PLAIN = /^[\w\-.~!$&'()+,=:@/]*$/;

/** What is refused in a path as it arrives. What the server behind makes of it can't be known. */
const REFUSED: readonly (readonly [RegExp, string])[] = [
  [/[^\0-\x7f]/, 'bytes that are not ASCII'],
  [/[\0- \x7f]/, 'a space or a control character'],
  [/[\\]/, 'a backslash'],
  [/;/, 'a ";"'],
  [/[#?]/, 'a "#" or "?"'],
  [/%(?![\da-f]{2})/i, 'a "%" that encodes nothing'],
  [/%2f/i, 'an encoded slash'],
  [/%5c/i, 'an encoded backslash'],
  [/%2e/i, 'an encoded dot'],
  [/%3b/i, 'an encoded ";"'],
  [/%(?:23|3f)/i, 'an encoded "#" or "?"'],
  [/%(?:[01][\da-f]|7f)/i, 'an encoded control character'],
];
/** What is refused in a path once it is decoded. */
const CONTROL = /[\x80-\x9f]/;
const ENCODED_TWICE = /%(?:[\da-f]{2}|u)/i;
const DOT_SEGMENT = /\/\.\.?(?:\/|$)/;

/** What no target has, not even behind the `?`: whoever cuts it off there sees another request. */
const CUTS_TARGET = /[#\0- \x7f]/;

/** The path of a request's target, which is in origin form. The query, from the first `?` on, is no part of it. */
export function canonicalTarget(target: string): Canonical {
  const queryStart = target.indexOf('?');
  if (queryStart === -1) return canonicalPath(target);
  if (CUTS_TARGET.test(target)) return { refusal: 'the query has a "#", a space or a control character' };
  return canonicalPath(target.slice(0, queryStart));
}

/**
 * A path as it is compared: percent-encoding only where it is needed, in upper case (RFC 3986, 6.2.2), and in place of
 * `*`, which patterns have. A slash at the end is dropped: most servers answer `/a/` as `/a`, or redirect.
 * A canonical path is its own canonical form. Case counts.
 */
export function canonicalPath(path: string): Canonical {
  if (!path.startsWith('/')) return { refusal: 'the path does not start with "/"' };
  const encoded = PLAIN.test(path) ? { value: path } : reencode(path);
  if ('refusal' in encoded) return encoded;
  const { value } = encoded;
  if (value.includes('//')) return { refusal: 'the path has an empty segment' };
  if (DOT_SEGMENT.test(value)) return { refusal: 'the path has a "." or ".." segment' };
  return { value: value.length > 1 && value.endsWith('/') ? value.slice(0, -1) : value };
}

/** Encodes what is not ASCII, which people may write as it is in patterns and URLs. Unpaired surrogates stay. */
export function encodeInternational(text: string): string {
  return text.replaceAll(/[^\0-\x7f\p{Cs}]+/gu, encodeURIComponent);
}

function reencode(path: string): Canonical {
  const fault = REFUSED.find(([pattern]) => pattern.test(path));
  if (fault) return { refusal: `the path has ${fault[1]}` };
  const decoded = decode(path);
  if (decoded === undefined) return { refusal: 'the path has encoded bytes that are not UTF-8' };
  if (CONTROL.test(decoded)) return { refusal: 'the path has an encoded control character' };
  if (ENCODED_TWICE.test(decoded)) return { refusal: 'the path has double encoding' };
  return { value: encodeURI(decoded).replaceAll('*', '%2A') };
}

/** Undefined if it is not UTF-8. */
function decode(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
