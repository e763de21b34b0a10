import { execFileSync, spawn } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { installedOnce } from './host.ts';
import { type Finished, finished } from './process.ts';
import { tempFolder } from './temp.ts';

/** Tools that git, npm and the scripts in `.bin` need. Python, make, compilers and everything else are missing. */
const PROGRAMS = ['sh', 'git', 'dirname', 'sed', 'uname'];

/** Variables for reaching the registry. Earlier downloads are missing, because npm's cache is in the home folder. */
const NETWORK = /^((https?|no|all)_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|npm_config_registry)$/i;

/** The environment of a machine with a shell, git and the programs in these folders. Its home is empty. */
export function bareMachine(...folders: readonly string[]): NodeJS.ProcessEnv {
  const programs = tempFolder();
  for (const program of PROGRAMS) {
    const path = execFileSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).trim();
    symlinkSync(path, join(programs, program));
  }
  const network = Object.entries(process.env).filter(([name]) => NETWORK.test(name));
  return { ...Object.fromEntries(network), HOME: tempFolder(), PATH: [...folders, programs].join(delimiter) };
}

/** Runs a command line on such a machine. */
export function runOn(machine: NodeJS.ProcessEnv, commandLine: string, cwd: string): Promise<Finished> {
  return finished(spawn('sh', ['-c', commandLine], { cwd, env: machine, stdio: ['ignore', 'pipe', 'pipe'] }));
}

/** Installs packages from the registry once for all tests of the suite, and returns the folder of their programs. */
export async function installPrograms(dependencies: Record<string, string>): Promise<string> {
  return join(await installedOnce({ dependencies, allowScripts: { node: true } }), 'node_modules/.bin');
}

/** The programs that Node 20 comes with. */
export const NODE_20 = { node: '20.20.2', npm: '10.8.2' };
