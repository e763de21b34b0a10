import { type BigIntStats, stat, statSync } from 'node:fs';

/** How often the file system is asked, in milliseconds. */
const POLL_MS = 500;

/** Runs work after a while. It keeps no process alive. */
export type Schedule = (work: () => void) => void;

/**
 * Notices that a file has changed, was replaced, or has come or gone. It asks the file system by the file's path, so
 * that it sees the files that editors put in the place of others, and links that are pointed elsewhere, on file systems
 * of whatever kind.
 */
export class FileWatch {
  readonly #path: string;
  readonly #schedule: Schedule;
  /** What the file was when it was last reported, or at the start. */
  #reported: string;
  #isStopped = false;

  /** Changes from now on will be reported. @param schedule when to look next */
  constructor(path: string, schedule: Schedule = (work) => void setTimeout(work, POLL_MS).unref()) {
    this.#path = path;
    this.#schedule = schedule;
    this.#reported = currentVersion(path);
  }

  /** Calls back after each change, once the file stays as it is: one that is being written may still be empty. */
  start(onChange: () => void): void {
    let last = this.#reported;
    const look = () =>
      stat(this.#path, { bigint: true }, (_, found) => {
        if (this.#isStopped) return;
        const version = versionOf(found);
        if (version !== this.#reported && version === last) {
          this.#reported = version;
          onChange();
        }
        last = version;
        this.#schedule(look);
      });
    this.#schedule(look);
  }

  stop(): void {
    this.#isStopped = true;
  }
}

function currentVersion(path: string): string {
  try {
    return versionOf(statSync(path, { bigint: true }));
  } catch {
    return versionOf(undefined);
  }
}

/** A text that differs for each version of a file. */
function versionOf(found: BigIntStats | undefined): string {
  return found ? [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(' ') : '';
}
