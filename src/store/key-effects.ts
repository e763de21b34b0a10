import type { Kysely } from 'kysely';
import {
  type Effect,
  type EffectFinder,
  type EffectKind,
  EFFECTS,
  type EffectWriter,
  type NewEffect,
  type Widening,
} from '../keys/key/index.ts';
import { type Connection, type DialectName, portOfStore } from './connection.ts';
import { chunksOf, isId } from './rows.ts';
import type { KeyEffectTable, Tables } from './tables.ts';

/** The effects that keys had on others. */
export const keyEffects = portOfStore({
  port: EFFECTS,
  read: ({ run, connection: { dialect } }) => effectFinderOf(run, dialect),
  write: ({ db, dialect }) => effectWriterOf(db, dialect),
});

function effectFinderOf(run: Connection['run'], dialect: DialectName): EffectFinder {
  const find = (column: 'key_id' | 'by_secret', values: readonly string[]) =>
    run(async (db) => {
      const found: Effect[] = [];
      for (const chunk of chunksOf(values))
        found.push(...(await selectEffects(db).where(`effect.${column}`, 'in', chunk).execute()).map(effectOf));
      return found;
    });
  return {
    by: (keyIds) =>
      run(async (db) => {
        const found = new Map<string, Effect>();
        for (const chunk of chunksOf(keyIds)) {
          const ids = db.selectFrom('key_effect_actors').select('effect_id').where('key_id', 'in', chunk);
          const rows = await selectEffects(db).where('effect.id', 'in', ids).execute();
          for (const row of rows) found.set(row.id, effectOf(row));
        }
        return [...found.values()];
      }),
    withSecrets: (publicIds) => find('by_secret', publicIds),
    on: (keyIds) => find('key_id', keyIds),
    actorsNamed: (nameOrId) =>
      run(async (db) => {
        const rows = await db
          .selectFrom('key_effect_actors')
          .select(['key_id as id', 'name'])
          .distinct()
          .where((row) =>
            row.or([row('name', '=', nameOrId), ...(isId(dialect, nameOrId) ? [row('key_id', '=', nameOrId)] : [])]),
          )
          .orderBy('key_id')
          .execute();
        return rows;
      }),
  };
}

function effectWriterOf(db: Kysely<Tables>, dialect: DialectName): Omit<EffectWriter, keyof EffectFinder> {
  return {
    async insert(effects) {
      for (const chunk of chunksOf(effects)) {
        await db
          .insertInto('key_effects')
          .values(chunk.map(effectRowOf))
          .onConflict((conflict) => conflict.doNothing())
          .execute();
        const actors = chunk.flatMap(({ id, actor, above }) =>
          [actor, ...above].map((key) => ({ effect_id: id, key_id: key.id, name: key.name })),
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
    async rename(keyId, name) {
      await db.updateTable('key_effect_actors').set({ name }).where('key_id', '=', keyId).execute();
    },
    async replaceKey(from, { id, name }) {
      await db.updateTable('key_effects').set({ key_id: id }).where('key_id', '=', from).execute();
      const done = db.selectFrom('key_effect_actors').select('effect_id').where('key_id', '=', from);
      await db
        .updateTable('key_effects')
        .set({ actor_id: id })
        .where('actor_id', '=', from)
        .where('id', 'in', done)
        .execute();
      await db.updateTable('key_effect_actors').set({ key_id: id, name }).where('key_id', '=', from).execute();
    },
    async export(keyIds) {
      const effects = await effectFinderOf((work) => work(db), dialect).on(keyIds);
      const above = new Map<string, { id: string; name: string }[]>();
      for (const chunk of chunksOf(effects.map(({ id }) => id))) {
        const rows = await db.selectFrom('key_effect_actors').selectAll().where('effect_id', 'in', chunk).execute();
        for (const { effect_id: effect, key_id: id, name } of rows)
          above.set(effect, [...(above.get(effect) ?? []), { id, name }]);
      }
      return effects.map((effect): NewEffect => {
        const others = (above.get(effect.id) ?? []).filter(({ id }) => id !== effect.actor.id);
        return { ...effect, above: others };
      });
    },
    async forget(before, limit) {
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
    },
  };
}

function selectEffects(db: Kysely<Tables>) {
  return db
    .selectFrom('key_effects as effect')
    .innerJoin('key_effect_actors as actor', (join) =>
      join.onRef('actor.effect_id', '=', 'effect.id').onRef('actor.key_id', '=', 'effect.actor_id'),
    )
    .selectAll('effect')
    .select('actor.name as actor_name')
    .orderBy('effect.at')
    .orderBy('effect.id');
}

function effectRowOf({ id, at, kind, actor, bySecret, keyId, secret, widening }: Effect): KeyEffectTable {
  return {
    id,
    at,
    kind,
    actor_id: actor.id,
    by_secret: bySecret,
    key_id: keyId,
    secret,
    widening: widening && JSON.stringify(widening),
  };
}

/** PostgreSQL returns large numbers as text. */
function effectOf(row: KeyEffectTable & { actor_name: string }): Effect {
  return {
    id: row.id,
    at: Number(row.at),
    kind: row.kind as EffectKind,
    actor: { id: row.actor_id, name: row.actor_name },
    bySecret: row.by_secret,
    keyId: row.key_id,
    secret: row.secret,
    widening: row.widening === null ? null : (JSON.parse(row.widening) as Widening),
  };
}
