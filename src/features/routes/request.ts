import { type OrRefusal, printable } from '../../keys/basics/index.ts';

/** A value in its canonical form, or the reason it has none. */
export type Canonical<Value = string> = OrRefusal<{ readonly value: Value }>;

/** A token (RFC 9110, 5.6.2). */
const METHOD = /^[!#$%&'*+.^_`|~\dA-Za-z-]+$/;

/** A method as it is compared. Case counts (RFC 9110, 9.1), but as some servers ignore it, lower case is refused. */
function canonicalMethod(text: string): Canonical {
  if (!METHOD.test(text)) return { refusal: 'the method is not a token' };
  return /[a-z]/.test(text) ? { refusal: 'the method is not in upper case' } : { value: text };
}

/** The most octets of a name (RFC 1035, 2.3.4), without its root dot. */
const MAX_LENGTH = 253;
const PORT = /:\d{0,5}$/;
const LABELS = /^[a-z\d_-]+(?:\.[a-z\d_-]+)*$/;
/** Matches IPv4 addresses in any notation of the WHATWG URL standard. */
const ENDS_IN_NUMBER = /(?:^|\.)(?:\d+|0x[\da-f]*)$/;
const INTERNATIONAL = /^[\p{L}\p{M}\p{N}._-]+$/u;
const IPV6 = /^\[[\da-f:.]+\]$/i;

/**
 * The canonical form of a host: lower case, international names by IDNA, IPv6 addresses in brackets and compressed. The
 * root dot is dropped, and so is the port: a client can write any port into its Host header, and servers choose their
 * site by name only. Otherwise, `Host: admin.example.org:81` would escape the routes of `admin.example.org`.
 */
export function canonicalHost(text: string): Canonical {
  // A port and a root dot come on top. The bound also keeps IDNA from long texts.
  if (text.length > MAX_LENGTH + ':65535.'.length) return { refusal: 'the host is too long' };
  const host = text.replace(PORT, '').replace(/\.$/, '').toLowerCase();
  if (host === '') return { refusal: 'the host is empty' };
  const isPlain = LABELS.test(host) && !ENDS_IN_NUMBER.test(host);
  const name = isPlain ? host : nameByUrl(host);
  if (name === undefined) return { refusal: 'the host is not a name or an address' };
  return name.length > MAX_LENGTH ? { refusal: 'the host is too long' } : { value: name };
}

function nameByUrl(host: string): string | undefined {
  // Checked before, because URL cuts a text at characters such as "/" and drops others, such as tabs.
  if (!INTERNATIONAL.test(host) && !IPV6.test(host)) return undefined;
  const name = URL.parse(`http://${host}`)?.hostname;
  if (name === undefined || name.startsWith('[')) return name;
  // 127.1 and 0x7f000001 are addresses only for some.
  if (ENDS_IN_NUMBER.test(name) && name !== host) return undefined;
  return LABELS.test(name) ? name : undefined;
}

/** Characters with the same meaning encoded or not. */
const PLAIN = /^[\w\-.~!$&'()+,=:@/]*$/;

/** Refused in a path as received, because it is unknown how the service would read it. */
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
/** Refused in a decoded path. */
const CONTROL = /[\x80-\x9f]/;
const ENCODED_TWICE = /%(?:[\da-f]{2}|u)/i;
const DOT_SEGMENT = /\/\.\.?(?:\/|$)/;

/** Never valid in a target, not even after the `?`: a server that cuts there would see another request. */
const CUTS_TARGET = /[#\0- \x7f]/;

/** The path of a request's target, which is in origin form. The query, from the first `?` on, is no part of it. */
export function canonicalTarget(target: string): Canonical {
  const queryStart = target.indexOf('?');
  if (queryStart === -1) return canonicalPath(target);
  if (CUTS_TARGET.test(target)) return { refusal: 'the query has a "#", a space or a control character' };
  return canonicalPath(target.slice(0, queryStart));
}

/**
 * The canonical form of a path: percent-encoding only where needed, in upper case (RFC 3986, 6.2.2), and for `*`, which
 * patterns use. A final slash is dropped, since most servers answer `/a/` as `/a`, or redirect. A canonical path is its
 * own canonical form. Case counts.
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

/** Encodes non-ASCII characters, which can appear literally in patterns and URLs. Unpaired surrogates stay. */
function encodeInternational(text: string): string {
  return text.replaceAll(/[^\0-\x7f\p{Cs}]+/gu, encodeURIComponent);
}

function reencode(path: string): Canonical {
  const issue = REFUSED.find(([pattern]) => pattern.test(path));
  if (issue) return { refusal: `the path has ${issue[1]}` };
  const decoded = decode(path);
  if (decoded === undefined) return { refusal: 'the path has encoded bytes that are not UTF-8' };
  if (CONTROL.test(decoded)) return { refusal: 'the path has an encoded control character' };
  if (ENCODED_TWICE.test(decoded)) return { refusal: 'the path has double encoding' };
  return { value: encodeURI(decoded).replaceAll('*', '%2A') };
}

/** Decodes percent-encoding; undefined if it is not UTF-8. */
export function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** The parts of a request that decide, in canonical form. */
export interface RouteRequest {
  readonly method: string;
  readonly host: string;
  readonly path: string;
}

/** A request as it arrived. */
export interface RequestParts {
  readonly method: string;
  /** The value of Host. */
  readonly host: string;
  /** A path, with or without a query. */
  readonly target: string;
  /** The value of Origin, which a CORS preflight has. */
  readonly origin?: string | undefined;
  /** The value of Access-Control-Request-Method, which a CORS preflight has. */
  readonly requestMethod?: string | undefined;
}

/**
 * A request as routes see it. It is refused if another server could see a different one in it.
 * @example
 * canonicalRequest({ method: 'GET', host: 'Example.org:443', target: '/%61/?b' });
 * // { value: { method: 'GET', host: 'example.org', path: '/a' } }
 */
export function canonicalRequest(parts: RequestParts): Canonical<RouteRequest> {
  const site = canonicalSite(parts);
  if ('refusal' in site) return site;
  const path = canonicalTarget(parts.target);
  return 'refusal' in path ? path : { value: { ...site.value, path: path.value } };
}

/** The same where the path does not matter, as long as there is one. */
export function canonicalSite(parts: RequestParts): Canonical<Omit<RouteRequest, 'path'>> {
  const method = canonicalMethod(parts.method);
  if ('refusal' in method) return method;
  const host = canonicalHost(parts.host);
  if ('refusal' in host) return host;
  const hasPath = parts.target.startsWith('/') || (parts.target === '*' && method.value === 'OPTIONS');
  if (!hasPath) return { refusal: 'the path does not start with "/"' };
  return { value: { method: method.value, host: host.value } };
}

/**
 * Reads the headers of a CORS preflight. A request with a body or another protocol is not one: browsers do not send
 * those, and the bytes after it would pass without a key.
 * @param header the value of a header, by its name in lower case
 */
export function preflightParts(
  header: (name: string) => string | undefined,
): Pick<RequestParts, 'origin' | 'requestMethod'> {
  const hasBody = header('transfer-encoding') !== undefined || !['', '0'].includes(header('content-length') ?? '');
  if (hasBody || header('upgrade') !== undefined) return {};
  return { origin: header('origin'), requestMethod: header('access-control-request-method') };
}

/** The CORS preflight that a browser sends before a request from a page of another origin. */
export function preflightOf(request: RequestParts): RequestParts {
  return { ...request, method: 'OPTIONS', origin: 'https://origin.example', requestMethod: request.method };
}

/** The method that a CORS preflight asks for (Fetch standard, 3.2.2); undefined for any other request. */
export function preflightMethod({ method, origin, requestMethod }: RequestParts): string | undefined {
  if (method !== 'OPTIONS' || origin === undefined || requestMethod === undefined) return undefined;
  const requested = canonicalMethod(requestMethod);
  return 'value' in requested ? requested.value : undefined;
}

/** The most segments of a path. Whatever follows them recurses so deep. */
const MAX_SEGMENTS = 100;

/** A pattern in canonical form, or a sentence with its problem and the remedy. */
export type Pattern = OrRefusal<{ readonly value: string }>;

/** Parses a route's host: a name, `*.example.org` for one or more labels before it, or `*`. */
export function parseHostPattern(text: string): Pattern {
  const host = readHost(text);
  return 'value' in host ? host : { refusal: `"${printable(text)}" is not a host for a route: ${host.refusal}.` };
}

/** Parses the path of a route: segments are text, `*` for exactly one, or a final `**` for the rest. */
export function parsePathPattern(text: string): Pattern {
  const path = readPath(text);
  return 'value' in path ? path : { refusal: `"${printable(text)}" is not a path for a route: ${path.refusal}.` };
}

/** Parses one of a route's methods. */
export function parseMethod(text: string): Pattern {
  const method = canonicalMethod(text);
  return 'value' in method
    ? method
    : { refusal: `"${printable(text)}" is not a method: write it in capital letters, as GET.` };
}

function readHost(text: string): Canonical {
  if (text === '*') return { value: '*' };
  const isSuffix = text.startsWith('*.');
  const name = isSuffix ? text.slice(2) : text;
  if (name.includes('*')) return { refusal: '"*" stands alone, or first, as in *.example.org' };
  const isAddress = name.startsWith('[') || /^[\d.]+$/.test(name);
  if (isSuffix && isAddress) return { refusal: '"*." goes before a name, not an address' };
  if (/:\d*$/.test(name.replace(/^\[.*\]/, ''))) return { refusal: 'leave out the port, which is not compared' };
  const host = canonicalHost(name);
  return isSuffix && 'value' in host ? { value: `*.${host.value}` } : host;
}

function readPath(text: string): Canonical {
  if (!text.startsWith('/')) return { refusal: 'it must start with "/"' };
  if (text.includes('?')) return { refusal: 'leave out the query, which is not compared' };
  const segments = text.slice(1).split('/');
  if (segments.at(-1) === '') segments.pop();
  if (segments.length > MAX_SEGMENTS) return { refusal: `it has more than ${MAX_SEGMENTS} segments` };
  const rest = segments.indexOf('**');
  if (rest !== -1 && rest < segments.length - 1) return { refusal: '"**" can only come last' };
  let path = '';
  for (const segment of segments) {
    const read = readSegment(segment);
    if ('refusal' in read) return read;
    path += read.value;
  }
  return { value: path || '/' };
}

function readSegment(text: string): Canonical {
  if (text === '*' || text === '**') return { value: `/${text}` };
  if (text.includes('*')) return { refusal: '"*" stands for a whole segment; write %2A for the character' };
  return canonicalPath(encodeInternational(`/${text}/`));
}

/**
 * Reads a request as people write it. Its path stays as it is: `new URL` would resolve `..`, and more. Non-ASCII
 * characters are encoded, as browsers do.
 * @param url `https://example.org/path?query`, http or https
 */
export function parseRequest(method: string, url: string): OrRefusal<{ value: RequestParts }> {
  const parsed = parseMethod(method);
  if ('refusal' in parsed) return parsed;
  const [, authority, target = ''] = /^https?:\/\/([^/?#]*)(.*)$/is.exec(url) ?? [];
  const host = canonicalHost(authority ?? '');
  if ('refusal' in host) {
    const reason = authority === undefined ? '' : `: ${host.refusal}`;
    return { refusal: `"${printable(url, 200)}" is not a URL${reason}. Write it as https://example.org/path.` };
  }
  const path = target.startsWith('/') ? target : `/${target}`;
  return { value: { method, host: host.value, target: encodeInternational(path) } };
}
