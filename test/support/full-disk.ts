import { spawnSync } from 'node:child_process';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { tempFolder } from './temp.ts';

/** A small file system for a test. */
export interface SmallDisk {
  folder: string;
  /** Fills the disk. */
  fill(): void;
  /** Frees that space again. */
  empty(): void;
  unmount(): void;
}

/** Mounts a file system of this size; undefined without permission to mount. */
export function mountSmallDisk(mebibytes: number): SmallDisk | undefined {
  const folder = tempFolder();
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=700`, 'tmpfs', folder]);
  if (status !== 0) return undefined;
  const filler = join(folder, 'filler');
  return {
    folder,
    fill() {
      const file = openSync(filler, 'a');
      try {
        for (;;) writeSync(file, Buffer.alloc(4096, 1));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      } finally {
        closeSync(file);
      }
    },
    empty: () => rmSync(filler),
    unmount: () => void spawnSync('umount', ['-l', folder]),
  };
}
