import { type BigIntStats, stat, statSync } from 'node:fs';
import { promisify } from 'node:util';

/** How often the file system is asked, in milliseconds. */
const POLL_MS = 500;

/** Runs work after a delay, without keeping the process alive. */
export type Schedule = (work: () => void) => void;

/**
 * Notices when a file is changed, replaced, created or deleted. It polls the file system by path, so that it also
 * notices files that editors put in the place of others, and redirected links, on any kind of file system.
 */
export class FileWatch {
  readonly #paths: readonly string[];
  readonly #schedule: Schedule;
  /** The versions of the files at the last report, or at the start. */
  #reported: string;
  #isStopped = false;

  /** Reports changes from now on. @param schedule schedules the next look */
  constructor(paths: readonly string[], schedule: Schedule = (work) => void setTimeout(work, POLL_MS).unref()) {
    this.#paths = paths;
    this.#schedule = schedule;
    this.#reported = paths.map(currentVersion).join();
  }

  /**
   * Calls back after each change, once two looks have found the same: a file that is being written can still be empty.
   * The next look comes after the callback has ended.
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

/** Identifies a version of a file. It is never empty, which stands for a missing file. */
function versionOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
}
