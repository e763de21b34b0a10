import type { OrRefusal } from '../../keys/basics/index.ts';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { canonicalName, isOurs } from './identity-headers.ts';
import type { Sent } from './sent-credentials.ts';
import { headerValues, REQUEST_ID, type Scheme } from '../../http/index.ts';
import { type CredentialPlace, holdsSecret } from '../../keys/secret/index.ts';
import { isIdentityHeader } from '../routes/index.ts';

/** Headers of one connection (RFC 9110, section 7.6.1), or of one hop's authentication, which are not passed on. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
]);

const NONE: ReadonlySet<string> = new Set();

/** The headers which the Connection header says that they are for one connection, in lower case. */
function connectionOptions(rawHeaders: readonly string[]): ReadonlySet<string> {
  const values = headerValues(rawHeaders, 'connection');
  if (values.length === 0) return NONE;
  return new Set(values.flatMap((value) => value.split(',').map((option) => option.trim().toLowerCase())));
}

/** Checks whether a body is compressed. */
export function isEncoded(rawHeaders: readonly string[]): boolean {
  const codings = headerValues(rawHeaders, 'content-encoding').flatMap((value) => value.split(','));
  return codings.some((coding) => !['', 'identity'].includes(coding.trim().toLowerCase()));
}

/** Names and values in turn, as pairs. */
export function pairsOf(raw: readonly string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, index) => [raw[2 * index]!, raw[2 * index + 1]!]);
}

/** A reason phrase (RFC 9112, section 4). */
const REASON = /^[\t -~\x80-\xff]*$/;

/** The valid part of a reason phrase, which clients do not need. */
export function reasonOf(message: string): string {
  return REASON.test(message) ? message : '';
}

/**
 * The head of an answer as text, to be sent as Latin-1: Node cannot send every informational answer.
 * @param headers names and values in turn
 */
export function headText(status: number, message: string, headers: readonly string[]): string {
  const lines = pairsOf(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${reasonOf(message)}\r\n${lines.join('')}\r\n`;
}

/** The headers that say how long a body is (RFC 9112, section 6), names and values in turn; empty without one. */
export type Framing = readonly string[];

const CHUNKED: Framing = ['Transfer-Encoding', 'chunked'];
/** Without a length, these have no body. Others have one, of length 0. */
const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS']);

/** The framing of a request to the upstream, which is that of the client; undefined if that is not clear. */
export function requestFraming({ method = '', httpVersionMinor, rawHeaders }: IncomingMessage): Framing | undefined {
  const lengths = headerValues(rawHeaders, 'content-length');
  const codings = headerValues(rawHeaders, 'transfer-encoding');
  if (codings.length > 0) {
    const isClear = lengths.length === 0 && httpVersionMinor === 1 && isChunked(codings);
    return isClear ? CHUNKED : undefined;
  }
  if (lengths.length > 1) return undefined;
  const [length] = lengths;
  if (length !== undefined) return ['Content-Length', length];
  return BODILESS.has(method) ? [] : ['Content-Length', '0'];
}

/**
 * Framing of an answer to the client, for the body as the upstream sends it; undefined if ambiguous. If the upstream
 * ends its answer by closing the connection, the client gets chunks.
 */
export function answerFraming(
  { statusCode = 0, rawHeaders }: IncomingMessage,
  { method, httpVersionMinor }: IncomingMessage,
): Framing | undefined {
  const lengths = headerValues(rawHeaders, 'content-length');
  const codings = headerValues(rawHeaders, 'transfer-encoding');
  if (lengths.length > 1 || (codings.length > 0 && !isChunked(codings))) return undefined;
  const [length] = lengths;
  if (length !== undefined && codings.length === 0) return ['Content-Length', length];
  const hasBody = method !== 'HEAD' && statusCode !== 204 && statusCode !== 304;
  return hasBody && httpVersionMinor === 1 ? CHUNKED : [];
}

/** Framing of an answer of unknown length. */
export function lengthless({ httpVersionMinor }: IncomingMessage): Framing {
  return httpVersionMinor === 1 ? CHUNKED : [];
}

/** Checks whether there can be a body. */
export function hasBody(framing: Framing): boolean {
  return framing.length > 0 && framing[1] !== '0';
}

/** Checks for a chunked body, which trailers can follow. */
export function hasTrailers(framing: Framing): boolean {
  return framing === CHUNKED;
}

function isChunked(codings: readonly string[]): boolean {
  return codings.length === 1 && codings[0]!.toLowerCase() === 'chunked';
}

/** The client, scheme and proxies of a request, as used for decisions. */
export interface Arrival {
  /** The client's address, and those of the proxies of ours on the way, the nearest last. */
  readonly addresses: readonly string[];
  /** The scheme of the client's request, if known. */
  readonly scheme: Scheme;
}

/** Headers beside `X-Forwarded-…` that say how a request has come, or which one it is: see `isForwarding`. */
const FORWARDING: ReadonlySet<string> = new Set([
  'forwarded',
  'front-end-https',
  'x-forwarded',
  'x-host',
  'x-http-host-override',
  'x-original-host',
  'x-original-method',
  'x-original-uri',
  'x-real-ip',
  'x-scheme',
  'x-url-scheme',
]);
/** Headers with the client's address, under the names that networks in front of proxies use. */
const ABOUT_ADDRESS = /(?<!^x-real)-ip(?:v6)?$|^(?:x-original-)?forwarded-for$/;

/** Checks for a forwarding header, by canonical name. We set these ourselves. */
function isForwarding(name: string): boolean {
  return name.startsWith('x-forwarded-') || FORWARDING.has(name) || ABOUT_ADDRESS.test(name);
}

/**
 * Checks whether to keep such a header: if it has the address that was used for the decision, or the identity from a
 * trusted proxy.
 */
function isBelieved(canonical: string, value: string, { arrival, saysWho }: RequestToPass): boolean {
  if (ABOUT_ADDRESS.test(canonical)) return value === arrival.addresses[0];
  return isIdentityHeader(canonical) && saysWho.has(canonical);
}

/**
 * Checks for an untrusted identity header, which services would take for true. Proxies replace only exact names, so
 * other spellings come from a client.
 */
function isForged(name: string, canonical: string, { saysWho, isTrusted, isPassedCredential }: RequestToPass): boolean {
  if (saysWho.has(canonical)) return !isTrusted || name.toLowerCase() !== canonical || isOurs(canonical);
  return isIdentityHeader(canonical) && !isPassedCredential(canonical);
}

/**
 * Headers that describe the origin of a request to the upstream, names and values in turn: `Forwarded` (RFC 7239) and
 * its older relatives. All state what was used for the decision, not what others claimed.
 */
function forwardingHeaders({ addresses, scheme }: Arrival, { host, path }: RequestTarget, method: string): string[] {
  const port = /:(\d+)$/.exec(host)?.[1] ?? (scheme === 'https' ? '443' : '80');
  const headers: string[] = [];
  if (addresses.length > 0) headers.push('X-Forwarded-For', addresses.join(', '), 'X-Real-IP', addresses[0]!);
  headers.push('X-Forwarded-Proto', scheme, 'X-Forwarded-Host', host, 'X-Forwarded-Port', port);
  headers.push('X-Forwarded-Method', method, 'X-Forwarded-Uri', path);
  const hops = addresses.length > 0 ? addresses : [undefined];
  const elements = hops.map((address) => `for=${node(address)};host=${quoted(host)};proto=${scheme}`);
  headers.push('Forwarded', elements.join(', '));
  return headers;
}

/** A node identifier (RFC 7239, section 6). */
function node(address: string | undefined): string {
  if (address === undefined) return 'unknown';
  return isIP(address) === 6 ? `"[${address}]"` : address;
}

/** A token if it is one, otherwise a quoted string (RFC 7239, section 4). A valid host has nothing to be escaped. */
function quoted(host: string): string {
  return /^[\w.~%-]+$/.test(host) ? host : `"${host}"`;
}

/** Checks whether a header can carry a key, by canonical name. */
export type IsCredential = (name: string, value: string) => boolean;

const CREDENTIAL_SCHEMES = { bearer: /^bearer\b/i, basic: /^basic\b/i };

/** The headers that can carry keys. */
function namesOf(places: readonly CredentialPlace[]): ReadonlySet<string> {
  return new Set(places.map((place) => (typeof place === 'string' ? 'authorization' : place.header)));
}

/**
 * Finds headers that can carry keys, so that none reaches the upstream. Authorization counts only with our schemes;
 * others are for the upstream.
 */
export function credentialHeaders(places: readonly CredentialPlace[]): IsCredential {
  const names = namesOf(places);
  const schemes = places.flatMap((place) => (typeof place === 'string' ? CREDENTIAL_SCHEMES[place] : []));
  return (name, value) =>
    names.has(name) && (name !== 'authorization' || schemes.some((scheme) => scheme.test(value.trimStart())));
}

/**
 * The same for a request without a key: only values in the form of our keys are held back, with any scheme or none. The
 * rest is for the upstream.
 */
export function ownCredentials(places: readonly CredentialPlace[]): IsCredential {
  const names = namesOf(places);
  return (name, value) => names.has(name) && holdsOwn(value);
}

const ESCAPED = /%[2-7][\da-f]/gi;
const BASE64_RUN = /[a-z\d+/_-]{16,}/gi;

/** Checks a header value for one of our keys: plain, percent-encoded, or in the base64 of Basic. */
function holdsOwn(value: string): boolean {
  const decoded = (value.match(BASE64_RUN) ?? []).map((run) => Buffer.from(run, 'base64').toString('latin1'));
  return [value, ...decoded].some((text) =>
    holdsSecret(text.replaceAll(ESCAPED, (escape) => decodeURIComponent(escape))),
  );
}

/** The target of a request, in the one form used both for the decision and for passing it on. */
export interface RequestTarget {
  /** The value of its Host header. */
  readonly host: string;
  /** Its path with the query, as it arrived, or `*`. */
  readonly path: string;
}

/** A host as RFC 9110, section 7.2, has it, without the characters that no real one has. */
const HOST = /^(?:[\w.~%-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;
const ABSOLUTE = /^https?:\/\/([^/?]*)(.*)$/i;

/**
 * Reads the target of a request. One in absolute form replaces the Host header (RFC 9112, section 3.2.2).
 * @returns a sentence that explains the problem if the target is ambiguous
 */
export function readTarget({ method, url = '', rawHeaders }: IncomingMessage): OrRefusal<RequestTarget> {
  const hosts = headerValues(rawHeaders, 'host');
  if (hosts.length > 1) return { refusal: 'The request has several Host headers.' };
  if (url.includes('#')) return { refusal: 'The target of the request has a "#".' };
  const [, authority, rest = ''] = ABSOLUTE.exec(url) ?? [];
  const host = authority ?? hosts[0] ?? '';
  if (hosts.length === 0 || !HOST.test(host)) return { refusal: 'The Host of the request is missing or invalid.' };
  if (authority !== undefined) return { host, path: rest.startsWith('/') ? rest : `/${rest}` };
  const isOrigin = url.startsWith('/') || (url === '*' && method === 'OPTIONS');
  return isOrigin ? { host, path: url } : { refusal: 'The target of the request is invalid.' };
}

/** A client's request, with information for the upstream. */
export interface RequestToPass {
  readonly rawHeaders: readonly string[];
  readonly target: RequestTarget;
  /** The Host that the upstream gets. */
  readonly host: string;
  readonly method: string;
  readonly framing: Framing;
  readonly arrival: Arrival;
  /** It came through a trusted proxy. */
  readonly isTrusted: boolean;
  /** Names and values in turn. */
  readonly identity: readonly string[];
  /** Request id for the logs of the upstream, if any. */
  readonly requestId: string | undefined;
  /** The headers of the trace that it goes on with, names and values in turn; undefined for the client's own. */
  readonly trace: readonly string[] | undefined;
  /** The protocol to upgrade to. */
  readonly upgrade: string | undefined;
  /** The credentials that the upstream gets in the place of the key. */
  readonly sent: Sent;
  /** The canonical names of headers in which a trusted proxy identifies the caller. */
  readonly saysWho: ReadonlySet<string>;
  /** Checks for a header with a key that is passed on, by canonical name. */
  readonly isPassedCredential: (canonical: string) => boolean;
  /** Checks for a header with the key, which is not passed on. The name is canonical. */
  isCredential(name: string, value: string): boolean;
}

/** The name that we have as an intermediary, in `Via` (RFC 9110, section 7.6.3). */
const VIA = '1.1 svc-api';
/** Headers that we write ourselves. */
const REWRITTEN: ReadonlySet<string> = new Set(['content-length', 'host', 'x-request-id']);

/**
 * Headers of a request to the upstream, names and values in turn: those of the client, unchanged and in order, except
 * for those of the connection, the key, and those that only we set. Framing comes last, because Node would decode a
 * Content-Disposition after a Content-Length.
 */
export function requestHeaders(request: RequestToPass): string[] {
  const { rawHeaders, target, method, host, framing, arrival, identity, requestId, trace = [] } = request;
  const { upgrade, sent } = request;
  const ofConnection = connectionOptions(rawHeaders);
  const headers = ['Host', host];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!;
    const [lowerCase, canonical] = [name.toLowerCase(), canonicalName(name)];
    const value = canonical === 'cookie' ? withoutOwnCookies(rawHeaders[index + 1]!) : rawHeaders[index + 1]!;
    if (value === undefined || isForged(name, canonical, request)) continue;
    const isPassed = isForwarding(canonical)
      ? isBelieved(canonical, value, request) && !request.isCredential(canonical, value)
      : !ofConnection.has(lowerCase) && isOwn(canonical, value, request);
    if (isPassed && (canonical !== 'trailer' || hasTrailers(framing))) headers.push(name, value);
  }
  headers.push(...forwardingHeaders(arrival, target, method), 'Via', VIA, ...identity, ...sent.headers);
  if (requestId !== undefined) headers.push(REQUEST_ID, requestId);
  headers.push(...trace);
  if (upgrade !== undefined) headers.push('Connection', 'Upgrade', 'Upgrade', upgrade);
  else if (takesTrailers(rawHeaders)) headers.push('Connection', 'keep-alive, TE', 'TE', 'trailers');
  headers.push(...framing);
  return headers;
}

/** Trailers of a request to the upstream. Some servers turn these into headers. */
export function requestTrailers(rawTrailers: readonly string[], request: RequestToPass): [string, string][] {
  return pairsOf(rawTrailers).filter(([name, value]) => {
    const canonical = canonicalName(name);
    const saysWho = request.saysWho.has(canonical) || isIdentityHeader(canonical);
    return !saysWho && !isForwarding(canonical) && canonical !== 'cookie' && isOwn(canonical, value, request);
  });
}

/** The cookies of our own pages, which browsers send to all services on a host: cookies know no ports. */
const OWN_COOKIE = /^\s*=?\s*(?:__(?:host|secure)-)?svc_api_/i;

/** The other cookies of a `Cookie` header, byte by byte; undefined if there are none. */
export function withoutOwnCookies(value: string): string | undefined {
  if (!/svc_api_/i.test(value)) return value;
  const others = value.split(';').filter((cookie) => !OWN_COOKIE.test(cookie));
  return others.length > 0 ? others.join(';').trimStart() : undefined;
}

/**
 * The headers of an answer to a client, names and values in turn.
 * @param sent credentials of the upstream, which the client must not see
 * @param more further headers to add
 */
export function answerHeaders(
  rawHeaders: readonly string[],
  sent: Sent,
  framing: Framing = [],
  more: readonly string[] = [],
): string[] {
  const ofConnection = connectionOptions(rawHeaders);
  const headers: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!.toLowerCase();
    const isFraming = name === 'content-length' || (name === 'trailer' && !hasTrailers(framing));
    // An id is that of the request here, which the upstream has got.
    if (isFraming || name === 'x-request-id' || HOP_BY_HOP.has(name) || ofConnection.has(name)) continue;
    // Otherwise an upstream could sign people in to our pages as anyone it likes.
    if (name === 'set-cookie' && OWN_COOKIE.test(rawHeaders[index + 1]!)) continue;
    headers.push(rawHeaders[index]!, sent.hide(rawHeaders[index + 1]!));
  }
  headers.push(...more, ...framing);
  return headers;
}

/** Headers that a trace is passed on by. */
const TRACING: ReadonlySet<string> = new Set(['traceparent', 'tracestate']);

/** Checks for a header to pass on unchanged. */
function isOwn(name: string, value: string, request: RequestToPass): boolean {
  if ((request.trace && TRACING.has(name)) || request.sent.replaces(name)) return false;
  return !HOP_BY_HOP.has(name) && !REWRITTEN.has(name) && !request.isCredential(name, value);
}

function takesTrailers(rawHeaders: readonly string[]): boolean {
  return headerValues(rawHeaders, 'te').some((value) => /(?:^|,)\s*trailers\s*(?:,|$)/i.test(value));
}
