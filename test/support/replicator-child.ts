// Does to a store what Litestream does: it holds a read transaction, has its own tables, and checkpoints the -wal.
import { copyFileSync } from 'node:fs';
import Database from 'better-sqlite3';

const [, , path, replica] = process.argv as unknown as [string, string, string, string];
const [reader, writer] = [new Database(path), new Database(path)];
writer.pragma('busy_timeout = 1000');
writer.pragma('wal_autocheckpoint = 0');
writer.exec('create table if not exists _litestream_seq (id integer primary key, seq integer)');
writer.exec('create table if not exists _litestream_lock (id integer)');

function read(): void {
  reader.exec('begin');
  reader.prepare('select count(*) from _litestream_seq').get();
}

/** Lets the -wal start over, between two read transactions. */
function checkpoint(mode: 'passive' | 'truncate'): void {
  if (mode === 'truncate') reader.exec('rollback');
  try {
    writer.pragma(`wal_checkpoint(${mode})`);
    writer.exec('insert into _litestream_seq values (1, 1) on conflict (id) do update set seq = seq + 1');
  } catch {
    // Another program is writing: try again next time.
  }
  if (mode === 'truncate') read();
}

read();
let round = 0;
const timer = setInterval(() => checkpoint((round += 1) % 3 === 0 ? 'truncate' : 'passive'), 50);
process.stdin.resume().once('end', () => {
  clearInterval(timer);
  // The file and its -wal are a complete copy.
  copyFileSync(path, replica);
  copyFileSync(`${path}-wal`, `${replica}-wal`);
  const restored = new Database(replica);
  restored.pragma('wal_checkpoint(truncate)');
  restored.close();
  reader.close();
  writer.close();
});
process.stdout.write('ready\n');
