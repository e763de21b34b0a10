import type { Kysely } from 'kysely';
import {
  type Effect,
  type EffectFinder,
  type EffectKind,
  EFFECTS,
  type EffectWriter,
  type NewEffect,
} from './effects.ts';
import type { Widening } from './widening.ts';
import {
  chunksOf,
  type Connection,
  isId,
  type DialectName,
  portOfStore,
  type StoreOfFeature,
  type Tables,
} from '../../store/index.ts';
import { effectTables, type KeyEffectTable } from './tables.ts';

/** Port of the effects of keys on others. */
const effects = portOfStore({
  port: EFFECTS,
  read: ({ run, connection: { dialect } }) => effectFinderOf(run, dialect),
  write: ({ db }) => effectWriterOf(db),
  forgetBefore: ({ db }, before, limit) => forgetEffects(db, before, limit),
});

/** All that is kept of effects. */
export const effectStore: StoreOfFeature = { ...effectTables, ports: [effects] };

function effectFinderOf(run: Connection['run'], dialect: DialectName): EffectFinder {
  return {
    by: (keyIds) =>
      run(async (db) => {
        const found = new Map<string, Effect>();
        for (const chunk of chunksOf(keyIds)) {
          const ids = db.selectFrom('key_effect_actors').select('effect_id').where('key_id', 'in', chunk);
          for (const row of await selectEffects(db).where('id', 'in', ids).execute()) found.set(row.id, effectOf(row));
        }
        return [...found.values()];
      }),
    withSecrets: (publicIds) => run((db) => findEffects(db, 'by_secret', publicIds)),
    on: (keyIds) => run((db) => findEffects(db, 'key_id', keyIds)),
    actorsNamed: (nameOrId) =>
      run((db) =>
        db
          .selectFrom('key_effect_actors')
          .select(['key_id as id', 'name'])
          .distinct()
          .where((row) =>
            row.or([row('name', '=', nameOrId), ...(isId(dialect, nameOrId) ? [row('key_id', '=', nameOrId)] : [])]),
          )
          .orderBy('key_id')
          .execute(),
      ),
  };
}

function effectWriterOf(db: Kysely<Tables>): Omit<EffectWriter, keyof EffectFinder> {
  return {
    async insert(effects) {
      for (const chunk of chunksOf(effects)) {
        await db
          .insertInto('key_effects')
          .values(chunk.map(rowOf))
          .onConflict((conflict) => conflict.doNothing())
          .execute();
        const actors = chunk.flatMap((effect) =>
          effect.actors.map(({ id, name }) => ({ effect_id: effect.id, key_id: id, name })),
        );
        for (const part of chunksOf(actors))
          await db
            .insertInto('key_effect_actors')
            .values(part)
            .onConflict((conflict) => conflict.doNothing())
            .execute();
      }
    },
    async delete(ids) {
      for (const chunk of chunksOf(ids)) await db.deleteFrom('key_effects').where('id', 'in', chunk).execute();
    },
    async rename({ id, name }) {
      await db.updateTable('key_effect_actors').set({ name }).where('key_id', '=', id).execute();
    },
    async replaceKey(from, { id, name }) {
      await db.updateTable('key_effects').set({ key_id: id }).where('key_id', '=', from).execute();
      // By the index of actors: there is none of `actor_id`.
      const done = db.selectFrom('key_effect_actors').select('effect_id').where('key_id', '=', from);
      const own = db.updateTable('key_effects').set({ actor_id: id }).where('actor_id', '=', from);
      await own.where('id', 'in', done).execute();
      await db.updateTable('key_effect_actors').set({ key_id: id, name }).where('key_id', '=', from).execute();
    },
    async export(keyIds) {
      const exported: NewEffect[] = [];
      for (const effect of await findEffects(db, 'key_id', keyIds)) {
        const actors = await db
          .selectFrom('key_effect_actors')
          .select(['key_id as id', 'name'])
          .where('effect_id', '=', effect.id)
          .execute();
        exported.push({ ...effect, actors });
      }
      return exported;
    },
  };
}

/** Forgets so many effects from before a time on keys that are gone, which led to no others. @returns how many */
async function forgetEffects(db: Kysely<Tables>, before: number, limit: number): Promise<number> {
  const forgotten = db
    .selectFrom('key_effects')
    .select('id')
    .where('at', '<', before)
    .where((row) =>
      row.not(row.exists(row.selectFrom('api_keys').select('api_keys.id').whereRef('api_keys.id', '=', 'key_id'))),
    )
    .where((row) => {
      const later = row.selectFrom('key_effects as later').select('later.id');
      return row.not(row.exists(later.whereRef('later.by_secret', '=', 'key_effects.secret')));
    })
    .limit(limit);
  const { numDeletedRows } = await db.deleteFrom('key_effects').where('id', 'in', forgotten).executeTakeFirst();
  return Number(numDeletedRows);
}

async function findEffects(
  db: Kysely<Tables>,
  column: 'key_id' | 'by_secret',
  values: readonly string[],
): Promise<Effect[]> {
  const found: Effect[] = [];
  for (const chunk of chunksOf(values))
    found.push(...(await selectEffects(db).where(column, 'in', chunk).execute()).map(effectOf));
  return found;
}

function selectEffects(db: Kysely<Tables>) {
  return db.selectFrom('key_effects').selectAll().orderBy('at').orderBy('id');
}

function rowOf({ id, at, kind, actorId, bySecret, keyId, secret, widening }: Effect): KeyEffectTable {
  return {
    id,
    at,
    kind,
    actor_id: actorId,
    by_secret: bySecret,
    key_id: keyId,
    secret,
    widening: widening && JSON.stringify(widening),
  };
}

/** PostgreSQL returns large numbers as text. */
function effectOf(row: KeyEffectTable): Effect {
  return {
    id: row.id,
    at: Number(row.at),
    kind: row.kind as EffectKind,
    actorId: row.actor_id,
    bySecret: row.by_secret,
    keyId: row.key_id,
    secret: row.secret,
    widening: row.widening === null ? null : (JSON.parse(row.widening) as Widening),
  };
}
