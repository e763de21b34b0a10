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

/** Whether a body is compressed. */
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

/** What may be passed on of a reason phrase. Nobody needs one. */
export function reasonOf(message: string): string {
  return REASON.test(message) ? message : '';
}

/**
 * The head of an answer as text, to be sent as Latin-1: for informational ones, of which Node cannot send all.
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
 * The framing of an answer to a client, for a body as the upstream sends it; undefined if that is not clear. Where the
 * upstream ends its answer by closing the connection, the client gets chunks.
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

/** The framing of an answer whose length is not known before its end. */
export function lengthless({ httpVersionMinor }: IncomingMessage): Framing {
  return httpVersionMinor === 1 ? CHUNKED : [];
}

/** Whether there may be a body. */
export function hasBody(framing: Framing): boolean {
  return framing.length > 0 && framing[1] !== '0';
}

/** Whether a body comes in chunks, so that trailers may follow it. */
export function hasTrailers(framing: Framing): boolean {
  return framing === CHUNKED;
}

function isChunked(codings: readonly string[]): boolean {
  return codings.length === 1 && codings[0]!.toLowerCase() === 'chunked';
}

/** How a request has come here, as it is judged. */
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
/** Those that say the client's address, by the names that networks before the proxy give them. */
const ABOUT_ADDRESS = /(?<!^x-real)-ip(?:v6)?$|^(?:x-original-)?forwarded-for$/;

/** Whether a header, by its canonical name, says how a request has come, which we say ourselves. */
function isForwarding(name: string): boolean {
  return name.startsWith('x-forwarded-') || FORWARDING.has(name) || ABOUT_ADDRESS.test(name);
}

/**
 * Whether such a header is passed on as it is: the address that was judged, or what a trusted proxy says of who makes the
 * request.
 */
function isBelieved(canonical: string, value: string, { arrival, saysWho }: RequestToPass): boolean {
  if (ABOUT_ADDRESS.test(canonical)) return value === arrival.addresses[0];
  return isIdentityHeader(canonical) && saysWho.has(canonical);
}

/**
 * Whether a header says who makes a request, and is not believed: services would take it for true. Proxies replace what
 * they know by its name alone, so that any other spelling is a client's.
 */
function isForged(name: string, canonical: string, { saysWho, isTrusted, isPassedCredential }: RequestToPass): boolean {
  if (saysWho.has(canonical)) return !isTrusted || name.toLowerCase() !== canonical || isOurs(canonical);
  return isIdentityHeader(canonical) && !isPassedCredential(canonical);
}

/**
 * The headers that tell the upstream how a request has come, names and values in turn: `Forwarded` (RFC 7239) and its
 * older relatives. All say the same, whoever has said something else: what was judged.
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

/** Whether a header, by its canonical name, is one in which a key may stand. */
export type IsCredential = (name: string, value: string) => boolean;

const CREDENTIAL_SCHEMES = { bearer: /^bearer\b/i, basic: /^basic\b/i };

/**
 * Finds the headers in which keys may stand, so that none gets to the upstream. Of Authorization those of our schemes
 * count: another one is the upstream's own matter.
 */
export function credentialHeaders(places: readonly CredentialPlace[]): IsCredential {
  const schemes = places.flatMap((place) => (typeof place === 'string' ? CREDENTIAL_SCHEMES[place] : []));
  const names = new Set(places.flatMap((place) => (typeof place === 'string' ? [] : place.header)));
  return (name, value) =>
    names.has(name) || (name === 'authorization' && schemes.some((scheme) => scheme.test(value.trimStart())));
}

/**
 * The same for a request that passes without a key: of what stands in those headers, only keys of ours are held back, by
 * their form, and all else is the upstream's own matter.
 */
export function ownCredentials(isCredential: IsCredential): IsCredential {
  return (name, value) => isCredential(name, value) && holdsOwn(value);
}

const ESCAPED = /%[2-7][\da-f]/gi;
const BASE64_RUN = /[a-z\d+/_-]{16,}/gi;

/** Whether a header's value has a key of ours, as it is, percent-encoded, or in the base64 of Basic. */
function holdsOwn(value: string): boolean {
  const decoded = (value.match(BASE64_RUN) ?? []).map((run) => Buffer.from(run, 'base64').toString('latin1'));
  return [value, ...decoded].some((text) =>
    holdsSecret(text.replaceAll(ESCAPED, (escape) => decodeURIComponent(escape))),
  );
}

/** Where a request is going: the only form in which it is both judged and passed on. */
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
 * @returns a sentence that says what is wrong if it is not clear where the request is going
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

/** A client's request, and what the upstream is told about it. */
export interface RequestToPass {
  readonly rawHeaders: readonly string[];
  readonly target: RequestTarget;
  /** The Host that the upstream gets. */
  readonly host: string;
  readonly method: string;
  readonly framing: Framing;
  readonly arrival: Arrival;
  /** Whether it has come by a proxy that is believed. */
  readonly isTrusted: boolean;
  /** Names and values in turn. */
  readonly identity: readonly string[];
  /** The id by which the upstream may log it, too; undefined where it has none. */
  readonly requestId: string | undefined;
  /** The headers of the trace that it goes on with, names and values in turn; undefined for the client's own. */
  readonly trace: readonly string[] | undefined;
  /** The protocol to upgrade to. */
  readonly upgrade: string | undefined;
  /** The credentials that the upstream gets in the place of the key. */
  readonly sent: Sent;
  /** The canonical names of headers in which a trusted proxy says who makes the request. */
  readonly saysWho: ReadonlySet<string>;
  /** Whether a header, by its canonical name, is one in which keys stand, and which is passed on. */
  readonly isPassedCredential: (canonical: string) => boolean;
  /** Whether a header has the key, which is not passed on. The name is canonical. */
  isCredential(name: string, value: string): boolean;
}

/** The name that we have as an intermediary, in `Via` (RFC 9110, section 7.6.3). */
const VIA = '1.1 svc-api';
/** Headers that are written anew, Content-Length and Host among them. */
const REWRITTEN: ReadonlySet<string> = new Set(['content-length', 'host', 'x-request-id']);

/**
 * The headers of a request to the upstream, names and values in turn: the client's as they are, in their order, without
 * those of the connection, the key, and what only we may say. Framing comes last: Node would decode a
 * Content-Disposition that comes after a Content-Length.
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

/** The trailers of a request to the upstream, of which some servers make headers. */
export function requestTrailers(rawTrailers: readonly string[], request: RequestToPass): [string, string][] {
  return pairsOf(rawTrailers).filter(([name, value]) => {
    const canonical = canonicalName(name);
    const saysWho = request.saysWho.has(canonical) || isIdentityHeader(canonical);
    return !saysWho && !isForwarding(canonical) && canonical !== 'cookie' && isOwn(canonical, value, request);
  });
}

/** The cookies of our own pages, which browsers send to all services on a host: cookies know no ports. */
const OWN_COOKIE = /^\s*=?\s*(?:__(?:host|secure)-)?svc_api_/i;

/** What a `Cookie` header has besides, byte by byte; undefined if that is nothing. */
export function withoutOwnCookies(value: string): string | undefined {
  if (!/svc_api_/i.test(value)) return value;
  const others = value.split(';').filter((cookie) => !OWN_COOKIE.test(cookie));
  return others.length > 0 ? others.join(';').trimStart() : undefined;
}

/**
 * The headers of an answer to a client, names and values in turn.
 * @param sent what the upstream got, and the client is not to see
 * @param more those that it is to have besides
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
    // An upstream could sign somebody in to our pages, as whom it likes.
    if (name === 'set-cookie' && OWN_COOKIE.test(rawHeaders[index + 1]!)) continue;
    headers.push(rawHeaders[index]!, sent.hide(rawHeaders[index + 1]!));
  }
  headers.push(...more, ...framing);
  return headers;
}

/** Headers that a trace is passed on by. */
const TRACING: ReadonlySet<string> = new Set(['traceparent', 'tracestate']);

/** Whether a header is the client's own matter. */
function isOwn(name: string, value: string, request: RequestToPass): boolean {
  if ((request.trace && TRACING.has(name)) || request.sent.replaces(name)) return false;
  return !HOP_BY_HOP.has(name) && !REWRITTEN.has(name) && !request.isCredential(name, value);
}

function takesTrailers(rawHeaders: readonly string[]): boolean {
  return headerValues(rawHeaders, 'te').some((value) => /(?:^|,)\s*trailers\s*(?:,|$)/i.test(value));
}
