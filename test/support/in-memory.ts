import { statfsSync } from 'node:fs';

const MEMORY = '/dev/shm';
const MIN_FREE_BYTES = 4 * 1024 ** 3;

/**
 * Keeps temporary files in memory, where there is plenty and TMPDIR is not set: to wait for a disk takes a fifth of the
 * time of the tests. PostgreSQL's are there in any case: it copies thousands of files. The tests of faults and
 * proxies use the disk.
 */
export function mochaGlobalSetup(): void {
  if (!isRoomy()) return;
  process.env['TMPDIR'] ??= MEMORY;
  process.env['TEST_DATABASE_FOLDER'] = MEMORY;
}

function isRoomy(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize > MIN_FREE_BYTES;
  } catch {
    return false;
  }
}
