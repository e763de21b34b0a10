import { codePoints, type Issue, printable } from '../basics/index.ts';
import { validateName } from '../key/index.ts';
import {
  type Catalog,
  type ConsentMode,
  createCatalog,
  parsePermissions,
  parseRoles,
  type Permission,
  type Role,
} from '../permissions/index.ts';
import type { Grants } from '../repository/index.ts';

/** A loopback address with any port, and the rest (RFC 8252, section 7.3); many applications write its name. */
const LOOPBACK = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost))(?::(\d{1,5}))?([/?].*)?$/;
/** A scheme of an application's own, which is a domain in reverse (RFC 8252, section 7.1). */
const PRIVATE = /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+:\/(?!\/)/;
/** What may stand in a URI (RFC 3986, section 2). */
const URI = /^[A-Za-z0-9._~:/?[\]@!$&'()*+,;=%-]+$/;
const MAX_LENGTH = 1000;

/**
 * What is wrong with a redirect URI that an application is registered with; undefined if nothing is. It is https, http
 * on a loopback address, or a scheme of the application's own, such as `com.example.app:/done`.
 */
export function invalidRedirect(uri: string): string | undefined {
  const isKnown = LOOPBACK.test(uri) || PRIVATE.test(uri) || uri.startsWith('https://');
  const parsed = isKnown && uri.length <= MAX_LENGTH && URI.test(uri) && URL.canParse(uri) ? new URL(uri) : undefined;
  if (parsed && parsed.username === '' && parsed.password === '') return undefined;
  const remedy = 'Write it as https://app.example.org/done, http://127.0.0.1/done or com.example.app:/done.';
  return `"${printable(uri)}" is not a redirect URI. ${remedy}`;
}

/**
 * Whether a redirect URI is the registered one: character by character (RFC 9700, section 2.1), except that a loopback
 * address may have any port, which the system has given to the application (RFC 8252, section 7.3).
 */
function isSameRedirect(registered: string, given: string): boolean {
  if (given === registered) return true;
  const [known, asked] = [LOOPBACK.exec(registered), LOOPBACK.exec(given)];
  if (!known || !asked || known[1] !== asked[1] || (known[3] ?? '') !== (asked[3] ?? '')) return false;
  const port = Number(asked[2] ?? 80);
  return port > 0 && port < 65_536 && String(port) === (asked[2] ?? '80');
}

/** Where a person is sent back to: the URI as it was registered, with parameters behind its own. */
export function redirectTo(uri: string, parameters: Readonly<Record<string, string | null>>): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== null) given.set(name, value);
  return `${uri}${uri.includes('?') ? '&' : '?'}${given.toString()}`;
}

/** An application that may ask for keys: a public client (RFC 6749, section 2.1), which has no secret. */
export interface Client {
  /** What it calls itself, such as `grafana-sync`. */
  readonly id: string;
  /** What people are shown. Its keys are named after it. */
  readonly name: string;
  /** Where people may be sent back to; none for one that only shows a code. */
  readonly redirects: readonly string[];
  /** Whether its keys end after an hour, and it gets new secrets for them by itself (RFC 6749, section 6). */
  readonly refreshes?: boolean;
}

/** The program itself: `svc-api login`. */
export const OWN_CLIENT: Client = {
  id: 'svc-api',
  name: 'svc api',
  redirects: ['http://127.0.0.1/callback', 'http://[::1]/callback'],
};

export const CLIENT_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
/** In code points. The name of a key has room for a date and some letters behind it. */
export const MAX_CLIENT_NAME_LENGTH = 60;

const MAX_REDIRECTS = 20;

/**
 * What applications say of themselves: in a document at the URL that is their id, or where they register.
 * @param fallback its name where it says none that a key can have
 * @returns undefined where people could be sent back nowhere
 */
export function selfDescribed(
  id: string,
  { name, redirects, refreshes }: { name: unknown; redirects: unknown; refreshes: boolean },
  fallback: string,
): Client | undefined {
  const uris = Array.isArray(redirects) ? redirects.slice(0, MAX_REDIRECTS) : [];
  const usable = uris.filter((uri): uri is string => typeof uri === 'string' && invalidRedirect(uri) === undefined);
  const names = [typeof name === 'string' ? name : '', fallback].map((text) =>
    Array.from(
      text
        .slice(0, 500)
        .normalize('NFC')
        .replaceAll(/[^\p{L}\p{M}\p{Nd}]+/gu, ' ')
        .trim(),
    )
      .slice(0, MAX_CLIENT_NAME_LENGTH)
      .join('')
      .trim(),
  );
  const readable = names.find((each) => validateName(each) === undefined) ?? 'Application';
  return usable.length > 0 ? { id, name: readable, redirects: usable, ...(refreshes && { refreshes }) } : undefined;
}

const DYNAMIC = 'dynamic~';
/** In characters. It stands in URLs, and is kept with each key. */
const MAX_DYNAMIC_LENGTH = 800;

/**
 * The id of an application that registers itself (RFC 7591): what it says of itself, so that nothing of it is kept.
 * @returns undefined where that is too long, or has no redirect URI
 */
export function registeredBy(said: Pick<Client, 'name' | 'redirects'> & { refreshes: boolean }): Client | undefined {
  const text = JSON.stringify([said.name, said.redirects, said.refreshes]);
  const id = DYNAMIC + Buffer.from(text).toString('base64url');
  return id.length > MAX_DYNAMIC_LENGTH ? undefined : selfDescribed(id, said, 'Application');
}

/** The application with the id that it has got by registering itself; undefined for any other id. */
export function readRegistered(id: string): Client | undefined {
  if (!id.startsWith(DYNAMIC) || id.length > MAX_DYNAMIC_LENGTH) return undefined;
  try {
    const said: unknown = JSON.parse(Buffer.from(id.slice(DYNAMIC.length), 'base64url').toString());
    const [name, redirects, refreshes] = Array.isArray(said) ? (said as unknown[]) : [];
    return selfDescribed(id, { name, redirects, refreshes: refreshes === true }, 'Application');
  } catch {
    return undefined;
  }
}

/** The host at which an application describes itself; undefined for one that does not. */
export function hostOfClient({ id }: Pick<Client, 'id'>): string | undefined {
  return id.startsWith('https://') ? URL.parse(id)?.host : undefined;
}

/** Whether an application has only said itself what it is. */
export function isSelfRegistered({ id }: Pick<Client, 'id'>): boolean {
  return id.startsWith(DYNAMIC);
}

/** What is wrong with a client, by where that is in it; empty if nothing is. */
export function invalidClient({ id, name, redirects }: Client): { path: (string | number)[]; message: string }[] {
  const problems: { path: (string | number)[]; message: string }[] = [];
  const add = (message: string | undefined, ...path: (string | number)[]) => {
    if (message !== undefined) problems.push({ path, message });
  };
  if (!CLIENT_ID.test(id))
    add(`"${printable(id)}" is not the id of a client: use letters, digits, ".", "_" and "-", at most 64.`, 'id');
  if (id === OWN_CLIENT.id) add(`"${OWN_CLIENT.id}" is the id of this program itself. Choose another one.`, 'id');
  add(validateName(name)?.message, 'name');
  if (codePoints(name) > MAX_CLIENT_NAME_LENGTH)
    add(`The name of a client has at most ${MAX_CLIENT_NAME_LENGTH} characters.`, 'name');
  for (const [index, redirect] of redirects.entries()) add(invalidRedirect(redirect), 'redirects', index);
  return problems;
}

/** What is wrong with clients where it is not said how they may ask; undefined if nothing is. */
export function unusableClients(clients: readonly Client[], consent: ConsentMode | undefined): string | undefined {
  if (clients.length === 0 || consent !== undefined) return undefined;
  return 'Clients are declared, but "consent" does not say how they may ask for keys: device, code, both or off.';
}

/** @throws RangeError that says what is wrong with the first client with which something is */
export function checkClients(clients: readonly Client[], { consent }: Pick<Catalog, 'consent'>): readonly Client[] {
  const unusable = unusableClients(clients, consent);
  if (unusable !== undefined) throw new RangeError(`${unusable} Pass it to openKeys.`);
  const [problem] = clients.flatMap(invalidClient);
  if (problem) throw new RangeError(problem.message);
  return clients;
}

/** The client with an id: the program itself, or one that was registered. */
export function findClient(clients: readonly Client[], id: string): Client | undefined {
  return [OWN_CLIENT, ...clients].find((client) => client.id === id);
}

/** Whether people may be sent back to a redirect URI. */
export function hasRedirect({ redirects }: Client, uri: string): boolean {
  return redirects.some((registered) => isSameRedirect(registered, uri));
}

const ROLE = /^role:/i;
/** The id of a key. */
const REPLACED = /^key:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** The item of a scope which asks that a key ends that the application has: that which it gets takes its place. */
export function replacing(id: string): string {
  return `key:${id}`;
}

/** What is built in is not a secret. What an installation declares is told to its keys alone. */
const BUILT_IN = createCatalog();
/** In characters: a longer item is not a name of anything. */
const MAX_EXPLAINED = 200;

interface ParsedScope {
  readonly grants: Grants;
  /** The id of a key of the application whose place is to be taken. */
  readonly replaces?: string;
}

/**
 * Parses a scope (RFC 6749, section 3.3): `RESOURCE:ACTION` and `role:ROLE`, with spaces between them, in either case.
 * Anybody may send one: each item is looked up once, and only the first that is wrong is explained, by built-in names.
 * An application may name a key of its own there whose place is taken: see `replacing`.
 * @returns the grants, each once, or what is wrong
 */
export function parseScope(scope: string, catalog: Catalog): ParsedScope | { issue: Issue } {
  const roles = new Set<Role>();
  const permissions = new Set<Permission>();
  let replaces: string | undefined;
  for (const item of scope.split(' ')) {
    if (item === '') continue;
    const replaced = REPLACED.exec(item)?.[1];
    if (replaced !== undefined) {
      replaces = replaced;
      continue;
    }
    const name = item.replace(ROLE, '');
    const grant = name.toUpperCase();
    const isRole = name !== item;
    if (isRole === grant.includes(':') || !catalog.knows(grant)) return { issue: explained(name, isRole) };
    if (isRole) roles.add(grant);
    else permissions.add(grant as Permission);
  }
  if (roles.size + permissions.size > 0)
    return { grants: { roles: [...roles], permissions: [...permissions] }, ...(replaces && { replaces }) };
  return { issue: { code: 'NO_GRANTS', message: 'The scope is empty: it needs RESOURCE:ACTION or role:ROLE.' } };
}

function explained(name: string, isRole: boolean): Issue {
  const item = name.slice(0, MAX_EXPLAINED);
  const [issue] = (isRole ? parseRoles([item], BUILT_IN) : parsePermissions([item], BUILT_IN)).issues;
  return issue!;
}

export function scopeItems({ roles, permissions }: { [List in keyof Grants]: readonly string[] }): string[] {
  return [...roles.map((role) => `role:${role}`), ...permissions];
}

export function formatScope(grants: Readonly<Grants>): string {
  return scopeItems(grants).join(' ');
}
