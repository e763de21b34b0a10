import { type OrRefusal, printable } from '../../keys/basics/index.ts';
import { isAliasOfIdentity, rewritingHeader } from './identity-headers.ts';
import { withoutOwnCookies } from './passed-headers.ts';
import {
  type RequestTo,
  headerValue,
  headerValues,
  isDecodable,
  memoized,
  readScheme,
  type Scheme,
  type ServedRequest,
} from '../../http/index.ts';
import { type Catalog, parsePermissions, parseResource, type Permission } from '../../keys/permissions/index.ts';
import { type Allow, goesByMethod, preflightParts, type RequestParts } from '../routes/index.ts';

/** A proxy's request that asks about another request. */
interface AskingRequest {
  readonly method: string;
  /** Names and values in turn, as Node has them. */
  readonly rawHeaders: readonly string[];
  /** The rest of the URL after the endpoint, where the proxy puts the target of the other request. */
  readonly target: string;
}

/** The other request, as the proxy describes it. */
interface OriginalRequest {
  readonly method: string;
  /** The value of Host. */
  readonly host: string;
  /** A path, with or without a query. */
  readonly target: string;
  /** The scheme of the client's request. It decides only which cookies are its own. */
  readonly scheme: Scheme;
}

/** The contract of a kind of proxy. */
interface Contract {
  /** Reads the other request, or says why it cannot. */
  read(asking: AskingRequest): OrRefusal<OriginalRequest>;
  /** The header with the client's address, which decides about keys that are limited to networks. */
  readonly address: string;
  /** The client gets answers unchanged, including status 429 and bodies. */
  readonly passesAnswers: boolean;
}

/** The headers that say it. */
type OriginalRequestHeaders = Omit<OriginalRequest, 'scheme'> & {
  /** Undefined for a proxy that need not set it. */
  readonly scheme?: string;
};

const SCHEME = 'X-Forwarded-Proto';
const ORIGINAL: OriginalRequestHeaders = {
  method: 'X-Original-Method',
  host: 'X-Forwarded-Host',
  target: 'X-Original-URI',
};
const FORWARDED: OriginalRequestHeaders = {
  method: 'X-Forwarded-Method',
  host: 'X-Forwarded-Host',
  target: 'X-Forwarded-Uri',
  scheme: SCHEME,
};
const FORWARDED_FOR = 'X-Forwarded-For';

/**
 * Contracts by endpoint name. Each trusts only the headers that its proxy always sets: the client may have written any
 * others.
 */
const CONTRACTS: ReadonlyMap<string, Contract> = new Map([
  ['nginx', { read: byHeaders(ORIGINAL), address: FORWARDED_FOR, passesAnswers: false }],
  ['caddy', { read: byHeaders(FORWARDED), address: FORWARDED_FOR, passesAnswers: true }],
  ['traefik', { read: byHeaders(FORWARDED), address: FORWARDED_FOR, passesAnswers: true }],
  ['haproxy', { read: byHeaders(FORWARDED), address: FORWARDED_FOR, passesAnswers: true }],
  // Envoy passes the client's X-Forwarded-For on, so it is not trusted.
  ['envoy', { read: asItself, address: 'X-Envoy-External-Address', passesAnswers: true }],
]);

function byHeaders(names: OriginalRequestHeaders): Contract['read'] {
  const parts = Object.entries(names) as [keyof OriginalRequestHeaders, string][];
  return ({ rawHeaders }) => {
    const said = { method: '', host: '', target: '', scheme: '' };
    for (const [part, name] of parts) {
      const value = onlyValue(rawHeaders, name);
      if (typeof value !== 'string') return value;
      said[part] = value;
    }
    if (names.scheme === undefined) return { ...said, scheme: knownScheme(rawHeaders) };
    const scheme = readScheme(said.scheme);
    return scheme === undefined ? { refusal: `${names.scheme} is neither http nor https` } : { ...said, scheme };
  };
}

/** The scheme if the proxy does not have to state it: sites use TLS. */
function knownScheme(rawHeaders: readonly string[]): Scheme {
  const said = onlyValue(rawHeaders, SCHEME);
  return (typeof said === 'string' ? readScheme(said) : undefined) ?? 'https';
}

/** Envoy asks with the method and Host of the request itself, and its target behind a prefix. */
function asItself({ method, rawHeaders, target }: AskingRequest): OrRefusal<OriginalRequest> {
  const host = onlyValue(rawHeaders, 'Host');
  return typeof host === 'string' ? { method, host, target, scheme: knownScheme(rawHeaders) } : host;
}

/** The value of a header that must be there once. */
function onlyValue(rawHeaders: readonly string[], name: string): OrRefusal<string> {
  const values = headerValues(rawHeaders, name.toLowerCase());
  return values.length > 1 ? { refusal: `${name} is repeated` } : (values[0] ?? { refusal: `${name} is missing` });
}

/** The endpoint that a proxy asks. */
interface Endpoint {
  readonly contract: Contract;
  /** The requirement in the URL, as a query; empty if there is none. */
  readonly requirement: string;
  /** The rest of the URL after it. */
  readonly target: string;
}

const BY_HEADERS = /^\/auth\/([a-z]+)(?:\?(.*))?$/s;
/**
 * Envoy appends the client's path and query to a prefix. The requirement comes before the endpoint name, so that the
 * client cannot write it: whatever it appends comes after `/auth/envoy`.
 */
const BY_PREFIX = /^\/auth\/(?:((?:resource|permission|any|methods)=[^/?]*|key)\/)?envoy(\/.*)$/s;

/** The endpoint at a URL; undefined if there is none. */
function endpointAt(url: string): Endpoint | undefined {
  const prefixed = BY_PREFIX.exec(url);
  if (prefixed) return { contract: CONTRACTS.get('envoy')!, requirement: prefixed[1] ?? '', target: prefixed[2]! };
  const [, name = '', requirement = ''] = BY_HEADERS.exec(url) ?? [];
  const contract = name === 'envoy' ? undefined : CONTRACTS.get(name);
  return contract && { contract, requirement, target: '' };
}

const NAMES: ReadonlySet<string> = new Set(['resource', 'permission', 'any', 'key', 'methods']);
const ENCODED_ASCII = /%[0-7][\da-f]/gi;
const FORMS =
  'write permission=RESOURCE:ACTION (repeated: all of them), any=RESOURCE:ACTION, resource=RESOURCE, or key; and ' +
  'methods=any if a permission to read allows every method';

/** Checks whether a query names a requirement, valid or not. The query comes from the client, and may not be UTF-8. */
function namesRequirement(query: string): boolean {
  return query.split('&').some((pair) => NAMES.has(pair.split('=', 1)[0]!.replaceAll(ENCODED_ASCII, decodeAscii)));
}

function decodeAscii(encoded: string): string {
  return String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
}

/** Cache of the requirements that proxies are configured with. There are few, and each request names one. */
export class Requirements {
  /**
   * Reads the query of an endpoint's URL: `resource=R` for a permission on it that depends on the method,
   * `permission=R:A`, repeated for all of several, `any=R:A`, repeated for any of them, or `key` for any valid key.
   * `methods=any` lets any method pass by a permission to read.
   */
  readonly read: (query: string) => OrRefusal<Allow>;

  constructor(catalog: Catalog) {
    this.read = memoized((query) => readRequirement(query, catalog));
  }
}

function readRequirement(query: string, catalog: Catalog): OrRefusal<Allow> {
  // Text that is not UTF-8 names no requirement.
  const parameters = new URLSearchParams(isDecodable(query) ? query : [[query, '']]);
  const unknown = [...parameters.keys()].find((other) => !NAMES.has(other));
  if (unknown !== undefined) return { refusal: `"${printable(unknown)}" in the endpoint's URL is unknown: ${FORMS}` };
  const methods = parameters.getAll('methods');
  parameters.delete('methods');
  const [name = '', ...others] = new Set(parameters.keys());
  if (others.length > 0) return { refusal: `the endpoint's URL has ${name} and ${others.join()}: ${FORMS}` };
  if (methods.length > 0 && (methods.join() !== 'any' || (name !== 'permission' && name !== 'any')))
    return {
      refusal: `the endpoint's URL has methods=${printable(methods.join())} with ${name || 'nothing'}: ${FORMS}`,
    };
  if (name === 'key') return { kind: 'key' };
  if (name === 'resource') {
    const [resource = '', ...more] = parameters.getAll(name);
    if (more.length > 0) return { refusal: `the endpoint's URL has several resources: ${FORMS}` };
    const parsed = parseResource(resource, catalog);
    return 'refusal' in parsed
      ? { refusal: `the endpoint's URL: ${parsed.refusal}` }
      : { kind: 'resource', resource: parsed.value };
  }
  const permissions = new Set<Permission>();
  for (const item of parameters.getAll(name)) {
    const { values, issues } = parsePermissions([item], catalog);
    // Report only the first problem, because explaining one takes time.
    if (issues[0]) return { refusal: `the endpoint's URL: ${issues[0].message}` };
    permissions.add(values[0]!);
  }
  return {
    kind: name === 'any' ? 'any' : 'all',
    permissions: [...permissions] as [Permission, ...Permission[]],
    readOnly: methods.length === 0,
  };
}

/** The request that a proxy asks about. */
export interface AskedRequest {
  readonly parts: RequestParts & RequestTo;
  /** The requirement that the proxy is configured with; undefined if routes decide. */
  readonly allow: Allow | undefined;
  /** The client gets answers unchanged, including status 429 and bodies. */
  readonly passesAnswers: boolean;
}

/** The reason a request is refused for every caller, for the log: a fixed word, and the details. */
export interface RequestIssue {
  readonly reason: string;
  readonly detail: string;
}

/** A proxy's question. */
export interface ForwardAuthRequest {
  /** The request it asks about, or the reason such a request is refused. */
  readonly request: OrRefusal<AskedRequest, RequestIssue>;
  /** The client's address and the header that has it, if there is exactly one. */
  readonly address: { readonly header: string; readonly said: string | undefined };
  /** The client's cookies without ours, for the service; undefined if it has sent none. */
  readonly cookies: string | undefined;
}

/** Reads a proxy's question by the contract of the endpoint. @param asking the proxy's own request */
export function readAsked(asking: ServedRequest, requirements: Requirements): ForwardAuthRequest {
  const endpoint = endpointAt(asking.target);
  const header = endpoint?.contract.address ?? FORWARDED_FOR;
  const address = onlyValue(asking.rawHeaders, header);
  return {
    request: readRequest(asking, endpoint, requirements),
    address: { header, said: typeof address === 'string' ? address : undefined },
    cookies: othersOf(headerValues(asking.rawHeaders, 'cookie')),
  };
}

/** Cookies of one or several headers, without our own. */
function othersOf(cookies: readonly string[]): string | undefined {
  return cookies.length === 0 ? undefined : cookies.flatMap((value) => withoutOwnCookies(value) ?? []).join('; ');
}

function readRequest(
  { method, rawHeaders, target: url }: ServedRequest,
  endpoint: Endpoint | undefined,
  requirements: Requirements,
): OrRefusal<AskedRequest, RequestIssue> {
  const alias = rawHeaders.find((name, index) => index % 2 === 0 && isAliasOfIdentity(name));
  if (alias !== undefined) return refuse('forged', `the client has sent ${printable(alias)}`);
  if (!endpoint) return refuse('unknown endpoint', `there is none at ${printable(url)}`);
  const { contract, target } = endpoint;
  const said = contract.read({ method, rawHeaders, target });
  if ('refusal' in said) return refuse('contract', said.refusal);
  const allow = parseAllow(endpoint, said.target, requirements);
  if (allow && 'refusal' in allow) return refuse('requirement', allow.refusal);
  const what = allow ? (goesByMethod(allow) ? 'method' : undefined) : 'request';
  const rewriting = what && rewritingHeader(rawHeaders, what);
  if (rewriting !== undefined) return refuse('rewriting', `${rewriting} would change the request`);
  const preflight = preflightParts((name) => headerValue(rawHeaders, name));
  return { parts: { ...said, ...preflight }, allow, passesAnswers: contract.passesAnswers };
}

/** A refusal with its reason. */
export function refuse(reason: string, detail: string): { readonly refusal: RequestIssue } {
  return { refusal: { reason, detail } };
}

/**
 * If the endpoint's URL has no query, a proxy may append the client's, and the client must not choose the requirement.
 * @param target of the client's request
 */
function parseAllow(
  { requirement, target: prefixed }: Endpoint,
  target: string,
  requirements: Requirements,
): ReturnType<Requirements['read']> | undefined {
  const [, clientQuery] = /\?(.+)$/s.exec(target) ?? [];
  if (prefixed === '' && clientQuery !== undefined && requirement.endsWith(clientQuery)) {
    if (namesRequirement(clientQuery))
      return { refusal: 'the query includes that of the client: end the URL with "?"' };
    if (requirement === clientQuery) return undefined;
  }
  return requirement === '' ? undefined : requirements.read(requirement);
}
