import type { Kysely } from 'kysely';
import { KeysError } from '../keys/errors.ts';
import type { DialectName } from './connection.ts';
import { createSchema } from './schema.ts';
import type { Tables } from './tables.ts';

/** Brings a store from one schema to the next. The previous version of the program must still work with the result. */
export type Migration = (db: Kysely<Tables>, dialect: DialectName) => Promise<void>;

/** All migrations, oldest first. One that has been released is never changed; the next change adds another one. */
export const MIGRATIONS: readonly Migration[] = [createSchema];

/** The schemas of versions that were never released have the numbers up to this one: nothing migrates those. */
const UNRELEASED = 27;

/** The number of the newest schema. */
export function newestSchema(): number {
  return UNRELEASED + MIGRATIONS.length;
}

/** What brings a store from one schema to a newer one. @param from 0 for a new store */
export function migrationsBetween(from: number, to: number): readonly Migration[] {
  return MIGRATIONS.slice(Math.max(from - UNRELEASED, 0), to - UNRELEASED);
}

/** Refuses a schema that this version cannot bring to the newest one. @throws KeysError STORE_NEWER, STORE_OLDER */
export function requireKnownSchema(version: number, location: string): void {
  if (version > newestSchema())
    throw new KeysError(
      'STORE_NEWER',
      `The key store ${location} was made by a newer version of svc-api ` +
        `(schema ${version}; this one knows ${newestSchema()}). Update svc-api.`,
    );
  if (version > 0 && version <= UNRELEASED)
    throw new KeysError(
      'STORE_OLDER',
      `The key store ${location} was made by a version of svc-api that was never released (schema ${version}). ` +
        'Run "apikey export --with-digests" with that version, and "apikey import" with this one, into a new store.',
    );
}

/** The error for a store that this version would have to migrate, where it may not. */
export function olderStore(location: string, version: number): KeysError {
  return new KeysError(
    'STORE_UNAVAILABLE',
    `The key store ${location} was made by an older version of svc-api (schema ${version}).`,
  );
}
