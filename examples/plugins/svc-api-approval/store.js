import { DEPLOYS } from './feature.js';

const TABLE = 'plugin_svc_api_approval_deploys';

const up = (db, { keyId, text }) =>
  db.schema
    .createTable(TABLE)
    .addColumn('id', text, (column) => column.primaryKey().notNull())
    .addColumn('what', text, (column) => column.notNull())
    .addColumn('asker', text, (column) => column.notNull())
    .addColumn('approver', text)
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('key_id', keyId, (column) => column.references('api_keys.id').onDelete('cascade'))
    .execute();

const read = ({ run }) => ({
  list: (since) =>
    run((db) => {
      const columns = ['id', 'what', 'asker', 'approver'];
      return db.selectFrom(TABLE).select(columns).where('at', '>', since).orderBy('at').execute();
    }),
  keyOf: async (id) =>
    (await run((db) => db.selectFrom(TABLE).select('key_id').where('id', '=', id).execute()))[0].key_id,
});

const write = ({ db }) => ({
  add: (deploy) => db.insertInto(TABLE).values(deploy).execute(),
  approve: (id, approver) => db.updateTable(TABLE).set({ approver }).where('id', '=', id).execute(),
  forget: (before) => db.deleteFrom(TABLE).where('at', '<=', before).execute(),
});

export const store = {
  tables: { [TABLE]: ['id'] },
  migrations: [{ name: 'deploys', up }],
  ports: [{ port: DEPLOYS, read, write }],
};
