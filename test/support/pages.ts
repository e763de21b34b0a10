import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { BIN, cleanEnv, type Finished, finished, ROOT } from './process.ts';

/** The code blocks of a page in one language, in order. */
export function blocksOf(page: string, language = 'sh'): string[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  return Array.from(text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms')), (match) => match[1]!);
}

/** The one code block of a page that contains a text. */
export function blockWith(text: string, page: string, language?: string): string {
  const [block, ...others] = blocksOf(page, language).filter((each) => each.includes(text));
  if (block === undefined || others.length > 0) throw new Error(`${page} has not one block with ${text}.`);
  return block;
}

/** A PATH with this checkout's `svc-api` in a folder, and the Node that runs the tests. */
export function pathWithCli(folder: string): string {
  const bin = join(folder, 'bin');
  mkdirSync(bin, { recursive: true });
  symlinkSync(BIN, join(bin, 'svc-api'));
  // Last, as a fallback for machines without curl or sqlite3.
  return [bin, dirname(process.execPath), process.env['PATH'], join(ROOT, 'test/support/bin')].join(delimiter);
}

/** Runs a block as a script that stops at the first failure. */
export function runBlock(block: string, cwd: string, env: NodeJS.ProcessEnv, input = ''): Promise<Finished> {
  // Without this, Bash reads its start-up file when stdin is a socket.
  const shell = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', block], { cwd, env: cleanEnv(env) });
  shell.stdin.on('error', () => {}); // It can exit before it reads all input.
  shell.stdin.end(input);
  return finished(shell);
}
