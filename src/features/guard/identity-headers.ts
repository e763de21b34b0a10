import { chainHolds, type Principal } from '../../keys/authorization/index.ts';
import type { Catalog, Permission } from '../../keys/permissions/index.ts';
import { printable } from '../../keys/basics/index.ts';
import { isIdentityHeader, type RequestParts } from '../routes/index.ts';

const UNUSUAL = /[^a-z\d-]/g;

/**
 * A header's name as services may take it: those that make variables of headers, as CGI, WSGI and PHP do, take
 * `X_Auth_Key_Id` for `X-Auth-Key-Id`.
 */
export function canonicalName(name: string): string {
  return name.toLowerCase().replaceAll(UNUSUAL, '-');
}

/**
 * The headers that tell a service who makes a request. Always all of them, empty on an open route: so a proxy that
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

/** Nobody, on an open route. */
export const NOBODY: IdentityHeaders = {
  'X-Auth-Key-Id': '',
  'X-Auth-Key-Name': '',
  'X-Auth-Roles': '',
  'X-Auth-Permission': '',
};

/** Who makes a request, by which of the key's permissions. */
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

/** Whether a header, by its canonical name, is one of ours, which no client and no proxy writes. */
export function isOurs(canonical: string): boolean {
  return IDENTITY_NAMES.has(canonical);
}

/** Services have credentials of their own there, such as `X-Auth-Token`. */
const MORE_OF_SERVICES = /^x-auth-(?!request-)/;

/**
 * Whether a header's name is only taken for one that says who makes a request, such as `X_Auth_Roles` or `Remote_User`:
 * no proxy replaces or removes it.
 */
export function isAliasOfIdentity(name: string): boolean {
  if (!/[^a-z\d-]/i.test(name)) return false;
  const canonical = canonicalName(name);
  return isOurs(canonical) || (isIdentityHeader(canonical) && !MORE_OF_SERVICES.test(canonical));
}

/**
 * Headers by which a client can ask some servers for another method or path than the one that is judged: those of
 * WSGI cut a script's name off the path.
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

/** The header, in whatever form, by which a request may become another one; or one with another method. */
export function rewritingHeader(rawHeaders: readonly string[], what: 'request' | 'method'): string | undefined {
  return rawHeaders.find((name, index) => {
    const rewritten =
      index % 2 === 0 && /^(?:x|script|path)/i.test(name) ? REWRITING.get(canonicalName(name)) : undefined;
    return rewritten !== undefined && (what === 'request' || rewritten === what);
  });
}

/** What the log says of a request that nobody may make: why, and which one it was, without its query. */
export function refusedRequest(refusal: string, { method, host, target }: RequestParts): string {
  return `${refusal}: ${printable(`${method} ${host}${target.replace(/\?.*/s, '')}`, 200)}`;
}
