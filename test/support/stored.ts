import { withKeys } from '../../src/cli/with-keys.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import type { ApiKey } from '../../src/keys/key/api-key.ts';

/** All keys of a store, oldest first. */
export function keysIn(database: string): Promise<ApiKey[]> {
  return withKeys({ database }, async (keys) => (await keys.list({ first: 500 }, OPERATOR)).keys);
}

/** The names of all keys of a store, sorted. */
export async function namesIn(database: string): Promise<string[]> {
  return (await keysIn(database)).map(({ name }) => name).toSorted();
}

/** The key of that name, if there is one. */
export async function keyNamed(database: string, name: string): Promise<ApiKey | undefined> {
  return (await keysIn(database)).find((key) => key.name === name);
}

/** Whether a secret is accepted now. */
export function isAccepted(database: string, secret: string): Promise<boolean> {
  return withKeys({ database }, async (keys) => 'principal' in (await keys.authenticate(secret)));
}
