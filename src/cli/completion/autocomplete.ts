import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Config } from '@oclif/core/config';
import { execute } from '@oclif/core/execute';
import { handle } from '@oclif/core/handle';
import type { LoadOptions } from '@oclif/core/interfaces';
import { processTerminal } from '../terminal.ts';
import { completedBash } from './bash.ts';
import { fishScript } from './fish.ts';
import { completedZsh } from './zsh.ts';

/**
 * Runs `svc-api autocomplete …`: the commands of `@oclif/plugin-autocomplete`, and what they leave out, which is fish and the
 * values of flags. It is called by `bin/run.js` alone, so that a host never gets it.
 */
export async function autocomplete(args: readonly string[], options: LoadOptions): Promise<void> {
  try {
    const config = await Config.load(options);
    if (isForFish(args, config.shell)) return processTerminal.out(fishScript(config.commands));
    await execute({ args: [...args], loadOptions: config });
    const functions = join(config.cacheDir, 'autocomplete', 'functions');
    await Promise.all([
      change(join(functions, 'bash', `${config.bin}.bash`), completedBash),
      change(join(functions, 'zsh', `_${config.bin}`), completedZsh),
    ]);
  } catch (error) {
    await handle(error as Error);
  }
}

/** Whether fish is named, or is the user's shell and no other is named. */
function isForFish([command, shell, ...more]: readonly string[], userShell: string): boolean {
  return command === 'autocomplete' && more.length === 0 && (shell ?? userShell) === 'fish';
}

/** Changes a file that the plugin has written, if it has done so yet. */
async function change(path: string, by: (text: string) => string): Promise<void> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) return;
  const changed = by(text);
  if (changed !== text) await writeFile(path, changed);
}
