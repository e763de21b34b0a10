import { isIP } from 'node:net';
import { type OrRefusal, printable } from '../../keys/basics/index.ts';
import { decode } from './request.ts';

/** The address of a service. */
export type UpstreamAddress =
  | { readonly protocol: 'http:' | 'https:'; readonly host: string; readonly port: number }
  | { readonly protocol: 'http:'; readonly socketPath: string };

/** A credential of its own that an upstream gets in the place of a caller's key. */
export interface SentCredential {
  /** The place of the credential: a header, or a query parameter. */
  readonly in: 'header' | 'query';
  readonly name: string;
  /** The absolute path of the file that holds it. */
  readonly file: string;
  /** The scheme before it, such as `Bearer`. */
  readonly scheme?: string | undefined;
  /** User name for sending it as a password with Basic (RFC 7617). */
  readonly user?: string | undefined;
}

/** A service that requests are passed on to. */
export interface Upstream {
  /** As logs and metrics name it; undefined for the one that a command line names. */
  readonly name?: string | undefined;
  readonly address: UpstreamAddress;
  readonly send: readonly SentCredential[];
  /** Sends its own address as the Host, instead of the client's. */
  readonly rewriteHost: boolean;
  /** Headers that say who makes a request, in lower case, which it gets from proxies that are trusted. */
  readonly passHeaders?: readonly string[] | undefined;
  /** Passes range requests on, although credentials split across parts cannot be found. */
  readonly ranges?: boolean | undefined;
}

const FORMS = 'http://127.0.0.1:3000, https://grafana.internal or http+unix:///run/app.sock';

/**
 * Parses the address of an upstream: `http://127.0.0.1:3000`, `https://grafana.internal`, `http+unix:///run/app.sock`.
 */
export function parseUpstream(text: string): OrRefusal<{ readonly value: UpstreamAddress }> {
  const url = URL.parse(text);
  const { protocol = '', hostname = '', port = '', pathname = '', username = '', password = '' } = url ?? {};
  if (username !== '' || password !== '')
    return refusal('The address contains a password, which every user of this machine can see');
  const socketPath = protocol === 'http+unix:' && hostname === '' && pathname !== '/' ? decode(pathname) : undefined;
  if (socketPath !== undefined) return { value: { protocol: 'http:', socketPath } };
  if ((protocol !== 'http:' && protocol !== 'https:') || hostname === '')
    return refusal(`"${printable(text)}" is not the address of an upstream${didYouMean(text)}`);
  if (url!.href !== `${url!.origin}/`)
    return refusal(`"${printable(text)}" must not have a path: paths are passed on unchanged`);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return { value: { protocol, host, port: port === '' ? { 'http:': 80, 'https:': 443 }[protocol] : Number(port) } };
}

/** Offers the scheme for an address without one, such as `localhost:3000`. */
function didYouMean(text: string): string {
  const url = /^(?:[\w.-]+|\[[\da-f:]+\])(?::\d+)?\/?$/i.test(text) ? URL.parse(`http://${text}`) : null;
  return url === null ? '' : `. Did you mean http://${url.host}?`;
}

function refusal(problem: string): { refusal: string } {
  return { refusal: `${problem.replace(/[^?]$/, '$&.')} Write it as ${FORMS}.` };
}

/** The Host header that an upstream expects by its address. */
export function formatHost(address: UpstreamAddress): string {
  if ('socketPath' in address) return 'localhost';
  const host = isIP(address.host) === 6 ? `[${address.host}]` : address.host;
  return address.port === { 'http:': 80, 'https:': 443 }[address.protocol] ? host : `${host}:${address.port}`;
}

/** Names of headers as upstreams have them for credentials. */
const HEADER = /^[a-z0-9]+(?:[-_][a-z0-9]+)*$/i;
/** Headers that the guard writes itself, or that belong to a connection or a body. */
const OWN: ReadonlySet<string> = new Set(
  (
    'accept-encoding connection cookie expect forwarded host http2-settings keep-alive range te trailer ' +
    'transfer-encoding upgrade via x-auth-key-id x-auth-key-name x-auth-permission x-auth-roles x-real-ip x-request-id'
  ).split(' '),
);
const OWN_FAMILIES = /^(?:content|proxy|sec|x-forwarded)-/;

/** The problem of a header name for sending a credential, as the end of a sentence; undefined if valid. */
export function problemOfSentHeader(name: string): string | undefined {
  if (!HEADER.test(name)) return 'is not a name of letters, digits, and single hyphens or underscores';
  const canonical = name.toLowerCase().replaceAll('_', '-');
  return OWN.has(canonical) || OWN_FAMILIES.test(canonical) ? 'is written by the guard itself' : undefined;
}

/**
 * Headers that services trust to identify the caller, as proxies and providers name them: those of oauth2-proxy,
 * Authelia, authentik, Pomerium, Kong, Cloudflare, Tailscale, Google, AWS, Azure, Shibboleth, mod_auth_openidc, Grafana,
 * Kubernetes, and client certificates.
 */
const SAYS_WHO = new RegExp(
  `^(?:${[
    '(?:x-|http-)?remote-.+',
    'x-forwarded-(?:user|name|email|groups?|roles|preferred-username|access-token|id-token)',
    'x-forwarded-(?:tls-)?client-cert.*',
    'x-(?:webauth|auth|authenticated|authentik|authelia|pomerium|vouch|tailscale|sso|saml|oidc|shib)-.+',
    '(?:cf-access|tailscale|oidc|shib|mellon)-.+',
    'x-(?:goog-(?:authenticated|iap)|amzn-(?:oidc|mtls)|ms-token)-.+',
    'x-ms-client-principal.*',
    'x-consumer-(?:id|custom-id|username|groups)',
    'x-credential-(?:identifier|username)',
    'x-(?:user|proxy-user|username|email|userinfo|id-token|jwt-assertion|endpoint-api-userinfo)',
    'x-user-(?:id|name|email|groups?|roles?)',
    'x-token-(?:subject|user-.+)',
    'teleport-jwt-assertion',
    '(?:x-)?(?:ssl-client|client-cert|client-dn|client-verify)(?:-.+)?',
    'x-arr-clientcert',
  ].join('|')})$`,
);

/** Checks whether services trust a header to identify the caller. @param canonical its name, with hyphens only */
export function isIdentityHeader(canonical: string): boolean {
  return SAYS_WHO.test(canonical);
}

/** The headers that the guard itself says who makes a request by. */
const OF_GUARD: ReadonlySet<string> = new Set([
  'x-auth-key-id',
  'x-auth-key-name',
  'x-auth-permission',
  'x-auth-roles',
]);

/**
 * The problem with the name of a header that identifies the caller, as the end of a sentence; undefined if it is valid.
 */
export function problemOfPassedHeader(name: string): string | undefined {
  if (!HEADER.test(name) || name.includes('_')) return 'is not a name of letters, digits and single hyphens';
  const canonical = name.toLowerCase();
  if (OF_GUARD.has(canonical)) return 'is written by the guard itself';
  return isIdentityHeader(canonical) ? undefined : 'does not identify the caller';
}
