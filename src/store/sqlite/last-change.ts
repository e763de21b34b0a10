import { closeSync, openSync, readSync } from 'node:fs';

/** The last change of a store, and the one before it: each has a random id. */
export interface LastChange {
  id: string;
  previousId: string;
}

/** The id of the change before the first one (RFC 9562, section 5.9). */
const NO_CHANGE = '00000000-0000-0000-0000-000000000000';

/** What SQLite stores before the ids of the one row of `last_change`: 75 bytes, row 1, a text of 72 bytes. */
const ROW_HEAD = Buffer.of(75, 1, 3, 0x81, 0x1d);
const IDS = /^([0-9a-f-]{36})([0-9a-f-]{36})$/;
const LEAF_OF_TABLE = 13;
const [WAL_HEADER_BYTES, FRAME_HEADER_BYTES] = [32, 24];

/** The last change, as the page of a database has it; undefined for other pages. */
export function lastChangeIn(page: Buffer): LastChange | undefined {
  if (page[0] !== LEAF_OF_TABLE || page.readUInt16BE(3) !== 1) return undefined;
  const row = page.subarray(page.readUInt16BE(8));
  if (!row.subarray(0, ROW_HEAD.length).equals(ROW_HEAD)) return undefined;
  const [, id, previousId] = IDS.exec(row.toString('latin1', ROW_HEAD.length, ROW_HEAD.length + 72)) ?? [];
  return id === undefined || previousId === undefined ? undefined : { id, previousId };
}

/** The last changes in a -wal file, if any, as far as SQLite would apply it: oldest first, with their page. */
export function lastChangesInWal(path: string): { page: number; pageBytes: number; changes: LastChange[] } | undefined {
  const file = openExisting(path);
  if (file === undefined) return undefined;
  try {
    const header = Buffer.alloc(WAL_HEADER_BYTES);
    if (readSync(file, header, 0, WAL_HEADER_BYTES, 0) < WAL_HEADER_BYTES) return undefined;
    const pageBytes = header.readUInt32BE(8);
    const frame = Buffer.alloc(FRAME_HEADER_BYTES + pageBytes);
    const changes: LastChange[] = [];
    let page = 0;
    for (let at = WAL_HEADER_BYTES; readSync(file, frame, 0, frame.length, at) === frame.length; at += frame.length) {
      // Frames of an earlier round through the file have another salt.
      if (frame.compare(header, 16, 24, 8, 16) !== 0) break;
      const change = lastChangeIn(frame.subarray(FRAME_HEADER_BYTES));
      if (!change) continue;
      page = frame.readUInt32BE(0);
      changes.push(change);
    }
    return changes.length > 0 ? { page, pageBytes, changes } : undefined;
  } finally {
    closeSync(file);
  }
}

/** SQLite removes the -wal file when the last program closes the store. */
function openExisting(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Whether a file with this last change may be what a store was at, or just before, one of these changes. */
export function precedes(inFile: LastChange | undefined, changes: readonly LastChange[]): boolean {
  return changes.some(({ id, previousId }) =>
    inFile ? inFile.id === id || inFile.id === previousId : previousId === NO_CHANGE,
  );
}
