import { validateName } from '../key/name.ts';
import type { Catalog, ConsentMode } from '../permissions/catalog.ts';
import { codePoints, printable } from '../text.ts';
import { invalidRedirect, isSameRedirect } from './redirects.ts';

/** An application that may ask for keys: a public client (RFC 6749, section 2.1), which has no secret. */
export interface Client {
  /** What it calls itself, such as `grafana-sync`. */
  readonly id: string;
  /** What people are shown. Its keys are named after it. */
  readonly name: string;
  /** Where people may be sent back to; none for one that only shows a code. */
  readonly redirects: readonly string[];
}

/** The program itself: `svc-api login`. */
export const OWN_CLIENT: Client = {
  id: 'svc-api',
  name: 'svc api',
  redirects: ['http://127.0.0.1/callback', 'http://[::1]/callback'],
};

/** What an id is made of. */
export const CLIENT_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
/** In code points. The name of a key has room for a date and some letters behind it. */
export const MAX_CLIENT_NAME_LENGTH = 60;

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
