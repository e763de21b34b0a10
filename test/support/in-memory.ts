import { statfsSync } from 'node:fs';

const MEMORY = '/dev/shm';
const MIN_FREE_BYTES = 4 * 1024 ** 3;

/**
 * Keeps temporary files in memory if there is enough and TMPDIR is not set: waiting for a disk is a fifth of the tests'
 * time. PostgreSQL copies thousands of files, so its data is always there. The tests of faults and proxies use the
 * disk.
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
