import { type BigIntStats, stat, statSync } from 'node:fs';
import { promisify } from 'node:util';

/** How often the file system is asked, in milliseconds. */
const POLL_MS = 500;

/** Runs work after a while. It keeps no process alive. */
export type Schedule = (work: () => void) => void;

/**
 * Notices that one of some files has changed, was replaced, or has come or gone. It asks the file system by their
 * paths, so that it sees the files that editors put in the place of others, and links that are pointed elsewhere, on
 * file systems of whatever kind.
 */
export class FileWatch {
  readonly #paths: readonly string[];
  readonly #schedule: Schedule;
  /** What the files were when they were last reported, or at the start. */
  #reported: string;
  #isStopped = false;

  /** Changes from now on will be reported. @param schedule when to look next */
  constructor(paths: readonly string[], schedule: Schedule = (work) => void setTimeout(work, POLL_MS).unref()) {
    this.#paths = paths;
    this.#schedule = schedule;
    this.#reported = paths.map(currentVersion).join();
  }

  /**
   * Calls back after each change, once the files stay as they are: one that is being written may still be empty. They
   * are looked at again when the callback has ended.
   */
  start(onChange: () => Promise<void> | void): void {
    let last = this.#reported;
    const look = async () => {
      const version = (await Promise.all(this.#paths.map(nextVersion))).join();
      if (this.#isStopped) return;
      if (version !== this.#reported && version === last) {
        this.#reported = version;
        await onChange();
      }
      last = version;
      this.#schedule(() => void look());
    };
    this.#schedule(() => void look());
  }

  stop(): void {
    this.#isStopped = true;
  }
}

function currentVersion(path: string): string {
  try {
    return versionOf(statSync(path, { bigint: true }));
  } catch {
    return '';
  }
}

function nextVersion(path: string): Promise<string> {
  return promisify(stat)(path, { bigint: true }).then(versionOf, () => '');
}

/** A text that differs for each version of a file, and from that of none. */
function versionOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
}
