import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Finished, finished, ROOT } from './process.ts';
import { tempFolder } from './temp.ts';

/** The user of the image. */
export const IMAGE_USER = 65_532;
const PORT = /^SVC_API_PORT=.*$/;

/** The instructions of a Dockerfile. Each must be on one line. */
export function instructionsOf(path: string): [name: string, rest: string][] {
  const lines = readFileSync(join(ROOT, path), 'utf8').split('\n');
  return lines.filter((line) => /^[A-Z]/.test(line)).map((line) => [line.split(' ', 1)[0]!, line.replace(/^\S+ /, '')]);
}

/** The parts of a container: the root file system, and the programs and variables of its Dockerfile. */
export interface Image {
  root: string;
  env: string[];
  entrypoint: string[];
  command: string[];
  health: string[];
}

/** A container without Docker: it has its own namespaces and a read-only root, and PID 1 runs as the image's user. */
export class Container {
  readonly volume: string;
  readonly #image: Image;
  readonly #port: number;
  #child: ChildProcess | undefined;

  constructor(image: Image, port: number) {
    this.#image = image;
    this.#port = port;
    const folder = tempFolder();
    chmodSync(folder, 0o755);
    this.volume = join(folder, 'volume');
    mkdirSync(this.volume, { mode: 0o700 });
    chownSync(this.volume, IMAGE_USER, IMAGE_USER);
  }

  /** Starts the program of the image. */
  start(): { child: ChildProcess; end: Promise<Finished> } {
    const { root, entrypoint, command } = this.#image;
    const script = `mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" &&
      mount --bind "$1" "$0/var/lib/svc-api" && mount -t proc proc "$0/proc" && shift &&
      exec chroot --userspec=${IMAGE_USER}:${IMAGE_USER} "$0" "$@"`;
    const program = [...entrypoint, ...command];
    const namespaces = ['--mount', '--pid', '--fork', '--kill-child'];
    this.#child = spawn('unshare', [...namespaces, 'sh', '-c', script, root, this.volume, ...program], {
      env: this.#env(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return { child: this.#child, end: finished(this.#child) };
  }

  /** Runs another program in the container, like `docker exec`. */
  run(program: readonly string[]): Promise<Finished> {
    const { root } = this.#image;
    const inside = ['chroot', `--userspec=${IMAGE_USER}:${IMAGE_USER}`, root, ...program];
    return finished(
      spawn('nsenter', ['--target', `${this.#first()}`, '--mount', '--pid', ...inside], {
        env: this.#env(),
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    );
  }

  /** Sends a signal to PID 1. */
  kill(signal: NodeJS.Signals): void {
    process.kill(this.#first()!, signal);
  }

  /** Kills PID 1, and all other processes with it. */
  end(): void {
    const first = this.#first();
    if (first !== undefined) process.kill(first, 'SIGKILL');
    this.#child?.kill('SIGKILL');
  }

  /** Undefined after the end. */
  #first(): number | undefined {
    const { pid } = this.#child!;
    const path = `/proc/${pid}/task/${pid}/children`;
    const children = existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
    return children === '' ? undefined : Number(children);
  }

  #env(): NodeJS.ProcessEnv {
    const given = this.#image.env.map((variable) => variable.replace(PORT, `SVC_API_PORT=${this.#port}`));
    const pairs = given.map((variable) => variable.split(/=(.*)/s).slice(0, 2));
    // Docker's PATH, plus the folders of programs outside.
    return { ...Object.fromEntries(pairs), PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } as NodeJS.ProcessEnv;
  }
}

/** The shells in a root file system. */
export function shellsIn(root: string): string[] {
  return ['bin/sh', 'bin/bash', 'usr/bin/sh', 'bin/busybox', 'usr/bin/env'].filter((path) =>
    existsSync(join(root, path)),
  );
}
