import type { Kysely } from 'kysely';
import type { ApiKey } from '../keys/key/api-key.ts';
import type { FoundBySecret } from '../keys/repository.ts';
import type { Connection } from './connection.ts';
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
  if (found?.row) return foundBy(digest, found.row, found.ancestors);
  return connection.run(async (db) => {
    const [row] = await selectByDigests(db, [digest]);
    if (row) return foundBy(digest, row, await selectCreators(db, row));
    const rotated = await findByRotatedDigest(db, digest);
    if (!rotated) return undefined;
    const { rotated_public_id: publicId, ...key } = rotated;
    return { key: apiKeyOf(key), secret: 'rotated', publicId, ancestors: byId(await selectCreators(db, key)) };
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

function foundBy(digest: string, row: KeyRow, ancestors: readonly KeyRow[]): FoundBySecret {
  const found = { key: apiKeyOf(row), ancestors: byId(ancestors) };
  return row.digest === digest
    ? { ...found, secret: 'current', publicId: found.key.publicId }
    : // A damaged row may be found by a digest that it does not have.
      { ...found, secret: 'previous', publicId: found.key.rotation?.previousPublicId ?? found.key.publicId };
}

function byId(rows: readonly KeyRow[]): Map<string, ApiKey> {
  return new Map(rows.map((row) => [row.id, apiKeyOf(row)]));
}
