// A server on the given store. For each line on stdin, it fails to write the usage of keys because the lock is held,
// and reports that just before its event loop becomes idle.
import '../../scripts/jsx.ts';
import { writeSync } from 'node:fs';
import Database from 'better-sqlite3';
import { startTestService } from './server.ts';

const { keys, url, database } = await startTestService({ database: process.argv[2]!, lockWaitMs: 30 });
writeSync(1, `${url}\n`);
process.stdin.on('data', () => {
  const other = new Database(database);
  other.exec('begin immediate');
  keys.finishActivity().catch((error: { code: string }) => {
    other.close();
    writeSync(1, `${error.code}\n`);
  });
});
