import { withKeys } from '../../src/cli/with-keys.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import type { ApiKey } from '../../src/keys/key/api-key.ts';
import { CALLER } from './remote.ts';
import { authenticate } from './keys.ts';

/** All keys of a store, oldest first, without the key that tests through a server use. */
export function keysIn(database: string): Promise<ApiKey[]> {
  return withKeys({ database }, async (keys) => {
    const all = (await keys.list({ first: 500 }, OPERATOR)).keys;
    const caller = all.find(({ name }) => name === CALLER)?.id;
    const others = all.filter(({ id }) => id !== caller);
    return others.map((key) => (key.createdBy === caller ? { ...key, createdBy: null } : key));
  });
}

/** The names of all keys of a store, sorted. */
export async function namesIn(database: string): Promise<string[]> {
  return (await keysIn(database)).map(({ name }) => name).toSorted();
}

/** The key with this name, if there is one. */
export async function keyNamed(database: string, name: string): Promise<ApiKey | undefined> {
  return (await keysIn(database)).find((key) => key.name === name);
}

/** True if a secret is accepted now. */
export function isAccepted(database: string, secret: string): Promise<boolean> {
  return withKeys({ database }, async (keys) => 'principal' in (await authenticate(keys, secret)));
}
