import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { isKeysError } from '../../src/keys/basics/errors.ts';
import { authenticate, openTestKeys } from '../support/keys.ts';
import { Random } from '../support/random.ts';
import { tempStore } from '../support/temp.ts';

const ROUNDS = 600;

describe('a bit of the store is flipped', () => {
  it(`in ${ROUNDS} places: a key is accepted with its grants, or refused`, async () => {
    const original = tempStore();
    const made = await openTestKeys({ database: original });
    const keys = new Map<string, { name: string; permissions: string }>();
    for (let index = 0; index < 20; index += 1) {
      const { key: secret, apiKey: key } = await made.keys.create(
        { name: `Key ${index}`, roles: index % 2 === 0 ? ['GUEST'] : ['VIEWER'], expiresIn: '1h' },
        OPERATOR,
      );
      const found = await authenticate(made.keys, secret);
      assert.ok('principal' in found);
      keys.set(secret, { name: key.name, permissions: found.principal.access.permissions().join() });
    }
    await made.store.close();
    const bytes = readFileSync(original);
    const places = placesOf(
      bytes,
      [...keys.values()].map(({ name }) => name),
    );
    const random = new Random(1);
    const outcomes = { whole: 0, refused: 0, failed: 0 };
    const copy = tempStore();
    for (let round = 0; round < ROUNDS; round += 1) {
      const flipped = Buffer.from(bytes);
      const place = random.pick(places);
      flipped[place]! ^= 1 << Math.floor(random.next() * 8);
      copyFileSync(original, copy);
      writeFileSync(copy, flipped);
      const outcome = await tryAll(copy, keys);
      outcomes[outcome] += 1;
    }
    assert.ok(outcomes.refused + outcomes.failed > ROUNDS / 20, JSON.stringify(outcomes));
  });

  /** The bytes of the pages with the rows of keys. Other pages hold indexes, the log or nothing. */
  function placesOf(bytes: Buffer, names: readonly string[]): number[] {
    const pageSize = bytes.readUInt16BE(16);
    const pages = new Set(names.flatMap((name) => occurrences(bytes, name).map((at) => Math.floor(at / pageSize))));
    return [...pages].flatMap((page) => Array.from({ length: pageSize }, (_, offset) => page * pageSize + offset));
  }

  function occurrences(bytes: Buffer, text: string): number[] {
    const found = [];
    for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) found.push(at);
    return found;
  }

  /** Tries all secrets. Accepted ones must have the same grants as before. */
  async function tryAll(
    database: string,
    keys: ReadonlyMap<string, { name: string; permissions: string }>,
  ): Promise<'whole' | 'refused' | 'failed'> {
    let outcome: 'whole' | 'refused' | 'failed' = 'whole';
    try {
      const { keys: service, store } = await openTestKeys({ database });
      try {
        for (const [secret, { name, permissions }] of keys) {
          const found = await authenticate(service, secret).catch(failed);
          if (found === undefined) outcome = 'failed';
          else if ('principal' in found) {
            const { apiKey: key, access } = found.principal;
            assert.deepEqual([key.name, access.permissions().join()], [name, permissions]);
          } else outcome = 'refused';
        }
      } finally {
        await store.close().catch(failed);
      }
    } catch (error) {
      failed(error);
      outcome = 'failed';
    }
    return outcome;
  }

  /** A failure must be a store error with a code. */
  function failed(error: unknown): undefined {
    assert.ok(isKeysError(error) && error.code.startsWith('STORE_'), String(error));
    return undefined;
  }
});
