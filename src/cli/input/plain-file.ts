import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';

/** The content of a regular file of limited size; undefined of anything else. Neither links nor pipes are followed. */
export function readPlainFile(path: Buffer | string, maxBytes: number): Buffer | undefined {
  let descriptor: number;
  try {
    // Opening a pipe would block otherwise.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const stat = fstatSync(descriptor);
    return stat.isFile() && stat.size <= maxBytes ? readFileSync(descriptor) : undefined;
  } finally {
    closeSync(descriptor);
  }
}
