import type { Kysely } from 'kysely';
import type { RotatedSecret } from '../keys/key/rotated-secret.ts';
import type { Tables } from './tables.ts';

/** The row of the key that had a secret with this digest once, with the public id of that secret. */
export function findByRotatedDigest(db: Kysely<Tables>, digest: string) {
  return db
    .selectFrom('rotated_secrets')
    .innerJoin('api_keys', 'api_keys.id', 'rotated_secrets.key_id')
    .selectAll('api_keys')
    .select('rotated_secrets.public_id as rotated_public_id')
    .where('rotated_secrets.digest', '=', digest)
    .executeTakeFirst();
}

/** Remembers secrets that keys had, inside a write transaction. */
export async function addRotatedSecrets(db: Kysely<Tables>, secrets: readonly RotatedSecret[]): Promise<void> {
  for (const { digest, publicId, keyId, rotatedAt } of secrets) {
    const columns = { public_id: publicId, key_id: keyId, rotated_at: rotatedAt };
    await db
      .insertInto('rotated_secrets')
      .values({ digest, ...columns })
      .onConflict((conflict) => conflict.column('digest').doUpdateSet(columns))
      .execute();
  }
}

/** Forgets the secrets that keys lost before a time, in milliseconds since 1970, inside a write transaction. */
export async function forgetRotatedSecrets(db: Kysely<Tables>, before: number): Promise<void> {
  await db.deleteFrom('rotated_secrets').where('rotated_at', '<', before).execute();
}
