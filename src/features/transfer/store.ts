import { IMPORTS, type ImportSpool } from './import.ts';
import { portOfStore, type StoreOfFeature } from '../../store/index.ts';

/** With fewer new keys, PostgreSQL finds them fast anyway. */
const MANY_KEYS = 10_000;

async function openSpool(): Promise<ImportSpool> {
  const [{ ImportSpoolFile }, { openPrivateDatabase }] = await Promise.all([
    import('./import-spool.ts'),
    import('../../store/sqlite/database.ts'),
  ]);
  return new ImportSpoolFile(openPrivateDatabase(''));
}

/** Keeps the lines of imports while they are checked. */
const spools = portOfStore({
  port: IMPORTS,
  read: ({ connection }) => ({
    open: openSpool,
    async settle(keys) {
      if (keys >= MANY_KEYS) await connection.vacuum?.();
    },
  }),
});

/** Its part of a store: a spool is a file of its own. */
export const transferStore: StoreOfFeature = { ports: [spools] };
