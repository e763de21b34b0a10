import { type Kysely, sql } from 'kysely';
import type { ColumnTypes, Tables, TablesOfFeature } from '../../store/index.ts';

/** A row of `key_effects`: see `Effect`. `widening` is a JSON text. */
export interface KeyEffectTable {
  id: string;
  at: number;
  kind: string;
  actor_id: string;
  by_secret: string | null;
  key_id: string;
  secret: string | null;
  widening: string | null;
}

/** A row of `key_effect_actors`: the key that brought something about, and each of its parent keys. */
export interface KeyEffectActorTable {
  effect_id: string;
  key_id: string;
  /** The latest that it had. */
  name: string;
}

declare module '../../store/tables.ts' {
  interface Tables {
    key_effects: KeyEffectTable;
    key_effect_actors: KeyEffectActorTable;
  }
}

/** Effects of keys on others. */
export const effectTables = {
  tables: { key_effects: ['id'], key_effect_actors: ['effect_id', 'key_id'] },
  migrations: [{ name: 'first release', up: createTables }],
} satisfies TablesOfFeature;

async function createTables(db: Kysely<Tables>, { text, keyId }: ColumnTypes): Promise<void> {
  // Effects of keys on others, as long as they are in force. They outlive the keys: so nothing refers to them. Each is
  // found by the key that did it and its parent keys, by the secret that did it, and by the key that it was done to.
  await sql`create table key_effects (
    id ${text} primary key not null,
    at bigint not null,
    kind ${text} not null,
    actor_id ${keyId} not null,
    by_secret ${text},
    key_id ${keyId} not null,
    secret ${text},
    widening ${text}
  )`.execute(db);
  await sql`create index key_effects_by_key on key_effects (key_id)`.execute(db);
  await sql`create index key_effects_by_secret on key_effects (by_secret)`.execute(db);
  await sql`create table key_effect_actors (
    effect_id ${text} not null references key_effects (id) on delete cascade,
    key_id ${keyId} not null,
    name ${text} not null,
    constraint key_effect_actors_pkey primary key (effect_id, key_id)
  )`.execute(db);
  await sql`create index key_effect_actors_by_key on key_effect_actors (key_id)`.execute(db);
  await sql`create index key_effect_actors_by_name on key_effect_actors (name)`.execute(db);
}
