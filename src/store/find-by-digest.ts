import type { Kysely } from 'kysely';
import type { ApiKey } from '../keys/key/api-key.ts';
import type { FoundBySecret } from '../keys/repository.ts';
import type { Connection, KeyRowBySecret } from './connection.ts';
import { selectAncestors } from './families.ts';
import { findByRotatedDigest } from './rotated-secrets.ts';
import { apiKeyOf } from './rows.ts';
import type { ApiKeyTable, KeyRow, Tables } from './tables.ts';

/** See `KeyRepository.findByDigest`. */
export function findByDigest(
  connection: Connection,
  digest: string,
): FoundBySecret | undefined | Promise<FoundBySecret | undefined> {
  const found = connection.findByDigest?.(digest);
  if (found) return found.row && foundBy(digest, found.row, found.ancestors);
  return connection.run(async (db) => {
    const [live] = await selectByDigests(db, [digest]);
    const row = live ?? (await findByRotatedDigest(db, digest));
    return row && foundBy(digest, row, await selectCreators(db, row));
  });
}

/** The rows of the keys that have a secret with one of these digests. */
export function selectByDigests(db: Kysely<Tables>, digests: readonly string[]): Promise<ApiKeyTable[]> {
  return db
    .selectFrom('api_keys')
    .selectAll()
    .where((row) => row.or([row('digest', 'in', digests), row('previous_digest', 'in', digests)]))
    .execute();
}

async function selectCreators(db: Kysely<Tables>, { created_by }: KeyRow): Promise<KeyRow[]> {
  return created_by === null ? [] : selectAncestors(db, [created_by]).selectAll('api_keys').execute();
}

function foundBy(digest: string, row: KeyRowBySecret, ancestors: readonly KeyRow[]): FoundBySecret {
  const found = { key: apiKeyOf(row), ancestors: byId(ancestors) };
  if (row.rotated_public_id !== undefined) return { ...found, secret: 'rotated', publicId: row.rotated_public_id };
  return row.digest === digest
    ? { ...found, secret: 'current', publicId: found.key.publicId }
    : // A damaged row may be found by a digest that it does not have.
      { ...found, secret: 'previous', publicId: found.key.rotation?.previousPublicId ?? found.key.publicId };
}

function byId(rows: readonly KeyRow[]): Map<string, ApiKey> {
  return new Map(rows.map((row) => [row.id, apiKeyOf(row)]));
}
