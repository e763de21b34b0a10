import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathWithCli } from './pages.ts';
import { cleanEnv, type Finished, finished } from './process.ts';
import { TerminalSession } from './pty.ts';
import { tempFolder } from './temp.ts';

/** Arguments that make a shell skip its start-up files. */
const SHELLS = { bash: ['--norc', '--noprofile', '-i'], zsh: ['-f', '-i'] };

/** A network and process namespace for commands from a page: ports are all free, and its processes end with it. */
export class Machine {
  readonly folder = tempFolder();
  readonly #env: NodeJS.ProcessEnv;

  constructor() {
    const home = join(this.folder, 'home');
    mkdirSync(home);
    this.#env = { HOME: home, XDG_CONFIG_HOME: join(home, '.config'), PATH: pathWithCli(this.folder), PS1: 'READY ' };
    Object.assign(this.#env, { no_proxy: '*', PS2: '', TERM: 'dumb' });
  }

  /** Writes the user's `svc-api.yaml`. */
  configure(text: string): void {
    const folder = join(this.folder, 'home/.config/svc-api');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'svc-api.yaml'), text);
  }

  /** Opens a terminal on the machine. */
  terminal(shell: keyof typeof SHELLS): TerminalSession {
    return new TerminalSession('unshare', this.#inside([shell, ...SHELLS[shell]]), this.#env);
  }

  /** Runs a script on the machine. */
  run(script: string): Promise<Finished> {
    const [program, ...args] = ['unshare', ...this.#inside(['bash', '--norc', '-euo', 'pipefail', '-c', script])];
    return finished(
      spawn(program, args, { cwd: this.folder, env: cleanEnv(this.#env), stdio: ['ignore', 'pipe', 'pipe'] }),
    );
  }

  #inside(command: readonly string[]): string[] {
    return ['--net', '--pid', '--fork', '--mount-proc', '--kill-child', 'sh', '-c'].concat(
      `ip link set lo up && cd '${this.folder}' && exec "$@"`,
      'sh',
      command,
    );
  }
}
