import { IMPORTS, type ImportSpool } from '../../keys/transfer/index.ts';
import { portOfStore } from '../../store/index.ts';

/** With fewer new keys, PostgreSQL finds them fast anyway. */
const MANY_KEYS = 10_000;

async function openSpool(): Promise<ImportSpool> {
  const { ImportSpoolFile } = await import('../../store/sqlite/import-spool.ts');
  return new ImportSpoolFile();
}

/** Keeps the lines of imports while they are checked. */
export const spools = portOfStore({
  port: IMPORTS,
  read: ({ connection }) => ({
    open: openSpool,
    async settle(keys) {
      if (keys >= MANY_KEYS) await connection.vacuum?.();
    },
  }),
});
