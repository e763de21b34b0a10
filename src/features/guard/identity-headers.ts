import { chainHolds, type Principal } from '../../keys/authorization/index.ts';
import type { Catalog, Permission } from '../../keys/permissions/index.ts';
import { printable } from '../../keys/basics/index.ts';
import { isIdentityHeader, type RequestParts } from '../routes/index.ts';

const UNUSUAL = /[^a-z\d-]/g;

/**
 * A header name as services may see it: CGI, WSGI and PHP turn headers into variables, so `X_Auth_Key_Id` equals
 * `X-Auth-Key-Id`.
 */
export function canonicalName(name: string): string {
  return name.toLowerCase().replaceAll(UNUSUAL, '-');
}

/**
 * Headers that identify the caller to a service. All are always set, empty on an open route, so that a proxy that
 * copies them replaces forged ones.
 */
export interface IdentityHeaders {
  /** The key's id. */
  readonly 'X-Auth-Key-Id': string;
  /** Its name, percent-encoded UTF-8. */
  readonly 'X-Auth-Key-Name': string;
  /** The roles that it holds now, separated by commas. */
  readonly 'X-Auth-Roles': string;
  /** The permissions that let the request pass, separated by commas. */
  readonly 'X-Auth-Permission': string;
}

/** The values on an open route. */
export const NOBODY: IdentityHeaders = {
  'X-Auth-Key-Id': '',
  'X-Auth-Key-Name': '',
  'X-Auth-Roles': '',
  'X-Auth-Permission': '',
};

/** Identifies the caller, with the permissions of the key that allow the request. */
export function identityHeaders(
  { apiKey: key, chain }: Principal,
  used: readonly Permission[],
  catalog: Catalog,
): IdentityHeaders {
  return {
    'X-Auth-Key-Id': key.id,
    'X-Auth-Key-Name': encodeURIComponent(key.name),
    'X-Auth-Roles': key.roles.filter((role) => catalog.knows(role) && chainHolds(chain, role, catalog)).join(),
    'X-Auth-Permission': used.join(),
  };
}

const IDENTITY_NAMES: ReadonlySet<string> = new Set(Object.keys(NOBODY).map((name) => name.toLowerCase()));

/** Checks whether a canonical name is one of our headers, which no client or proxy may set. */
export function isOurs(canonical: string): boolean {
  return IDENTITY_NAMES.has(canonical);
}

/** Services have credentials of their own there, such as `X-Auth-Token`. */
const MORE_OF_SERVICES = /^x-auth-(?!request-)/;

/**
 * Checks for a name that services could mistake for an identity header, such as `X_Auth_Roles` or `Remote_User`. No
 * proxy replaces or removes these.
 */
export function isAliasOfIdentity(name: string): boolean {
  if (!/[^a-z\d-]/i.test(name)) return false;
  const canonical = canonicalName(name);
  return isOurs(canonical) || (isIdentityHeader(canonical) && !MORE_OF_SERVICES.test(canonical));
}

/**
 * Headers that make some servers use another method or path than the one that was checked. Those of WSGI cut a script's
 * name off the path.
 */
const REWRITING: ReadonlyMap<string, 'method' | 'path'> = new Map([
  ['x-http-method', 'method'],
  ['x-http-method-override', 'method'],
  ['x-method-override', 'method'],
  ['x-original-url', 'path'],
  ['x-rewrite-url', 'path'],
  ['x-script-name', 'path'],
  ['script-name', 'path'],
  ['path-info', 'path'],
]);

/** Finds a header, in any spelling, that could change the request, or only its method. */
export function rewritingHeader(rawHeaders: readonly string[], what: 'request' | 'method'): string | undefined {
  return rawHeaders.find((name, index) => {
    const rewritten =
      index % 2 === 0 && /^(?:x|script|path)/i.test(name) ? REWRITING.get(canonicalName(name)) : undefined;
    return rewritten !== undefined && (what === 'request' || rewritten === what);
  });
}

/** Log entry of a request that is refused for everyone: the reason, and the request without its query. */
export function refusedRequest(refusal: string, { method, host, target }: RequestParts): string {
  return `${refusal}: ${printable(`${method} ${host}${target.replace(/\?.*/s, '')}`, 200)}`;
}
