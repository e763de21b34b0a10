import { codePoints, printable } from '../../keys/basics/index.ts';
import { validateName } from '../../keys/key/index.ts';
import type { ConsentMode } from './modes.ts';
import { invalidRedirect, isSameRedirect } from './redirects.ts';

/** An application that can request keys: a public client (RFC 6749, section 2.1), which has no secret. */
export interface Client {
  /** Its id, such as `grafana-sync`. */
  readonly id: string;
  /** Name shown to people. Its keys are named after it. */
  readonly name: string;
  /** Allowed redirect URIs; none for an application that only shows a code. */
  readonly redirects: readonly string[];
  /** Its secrets expire after an hour, and it refreshes them itself (RFC 6749, section 6). */
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
 * Reads the self-description of an application, from the document at its id or from its registration.
 * @param fallback name if it has none that a key can have
 * @returns undefined if it has no valid redirect URI
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
/** Maximum length: the id appears in URLs and is stored with each key. */
const MAX_DYNAMIC_LENGTH = 800;

/**
 * Builds the id of an application that registers itself (RFC 7591). The id contains its description, so that nothing is
 * stored.
 * @returns undefined if that is too long, or has no redirect URI
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

/** Checks for an application that registered itself, so that nothing about it is verified. */
export function isSelfRegistered({ id }: Pick<Client, 'id'>): boolean {
  return id.startsWith(DYNAMIC);
}

/** Finds problems of a client, by path. */
export function invalidClient({ id, name, redirects }: Client): { path: (string | number)[]; message: string }[] {
  const problems: { path: (string | number)[]; message: string }[] = [];
  const add = (message: string | undefined, ...path: (string | number)[]) => {
    if (message !== undefined) problems.push({ path, message });
  };
  if (!CLIENT_ID.test(id))
    add(`"${printable(id)}" is not a valid client id: use at most 64 letters, digits, ".", "_" and "-".`, 'id');
  if (id === OWN_CLIENT.id) add(`"${OWN_CLIENT.id}" is reserved for svc-api itself. Choose another id.`, 'id');
  add(validateName(name)?.message, 'name');
  if (codePoints(name) > MAX_CLIENT_NAME_LENGTH)
    add(`The name of a client can have at most ${MAX_CLIENT_NAME_LENGTH} characters.`, 'name');
  for (const [index, redirect] of redirects.entries()) add(invalidRedirect(redirect), 'redirects', index);
  return problems;
}

/** Finds clients that cannot be used because `consent` is not set. */
export function unusableClients(clients: readonly Client[], consent: ConsentMode | undefined): string | undefined {
  if (clients.length === 0 || consent !== undefined) return undefined;
  return 'Clients are declared, but "consent" is missing. Set it to device, code, both or off.';
}

/** @throws RangeError with the problem of the first invalid client */
export function checkClients(clients: readonly Client[]): readonly Client[] {
  const [problem] = clients.flatMap(invalidClient);
  if (problem) throw new RangeError(problem.message);
  return clients;
}

/** The client with an id: the program itself, or one that was registered. */
export function findClient(clients: readonly Client[], id: string): Client | undefined {
  return [OWN_CLIENT, ...clients].find((client) => client.id === id);
}

/** Checks whether a redirect URI is allowed. */
export function hasRedirect({ redirects }: Client, uri: string): boolean {
  return redirects.some((registered) => isSameRedirect(registered, uri));
}
