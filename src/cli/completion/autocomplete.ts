import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Config } from '@oclif/core/config';
import { flush } from '@oclif/core/flush';
import type { LoadOptions } from '@oclif/core/interfaces';
import { run } from '@oclif/core/run';
import { reportFailure } from '../explain/report.ts';
import { processTerminal } from '../terminal.ts';
import { completedBash } from './bash.ts';
import { fishScript } from './fish.ts';
import { completedZsh } from './zsh.ts';

/**
 * Runs `svc-api autocomplete …` with `@oclif/plugin-autocomplete`, and adds what that lacks: fish, and the values of
 * flags. Only `bin/run.js` calls it, so a host never gets it.
 */
export async function autocomplete(args: readonly string[], options: LoadOptions): Promise<void> {
  try {
    const config = await Config.load(options);
    if (isForFish(args, config.shell)) return processTerminal.out(fishScript(config.commands));
    await run([...args], config);
    await flush();
    const functions = join(config.cacheDir, 'autocomplete', 'functions');
    await Promise.all([
      rewrite(join(functions, 'bash', `${config.bin}.bash`), completedBash),
      rewrite(join(functions, 'zsh', `_${config.bin}`), completedZsh),
    ]);
  } catch (error) {
    await reportFailure(error, args, options);
  }
}

/** Whether fish is asked for by name, or no shell is named and the user's shell is fish. */
function isForFish([command, shell, ...more]: readonly string[], userShell: string): boolean {
  return command === 'autocomplete' && more.length === 0 && (shell ?? userShell) === 'fish';
}

/** Rewrites a file that the plugin has generated, if it exists. */
async function rewrite(path: string, transform: (text: string) => string): Promise<void> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) return;
  const rewritten = transform(text);
  if (rewritten !== text) await writeFile(path, rewritten);
}
