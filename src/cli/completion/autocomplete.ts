import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { Config } from '@oclif/core/config';
import { flush } from '@oclif/core/flush';
import type { LoadOptions } from '@oclif/core/interfaces';
import { run } from '@oclif/core/run';
import { reportFailure } from '../explain/report.ts';
import { outputFailed, processTerminal } from '../terminal.ts';
import { SHELLS } from './offer.ts';
import { scriptOf } from './script.ts';

const COMMANDS = ['autocomplete', 'autocomplete:script'];

/**
 * Runs `svc-api autocomplete …` with `@oclif/plugin-autocomplete`, and adds what that lacks: fish, the values of flags,
 * and the names of keys. Only `bin/run.js` calls it, so a host never gets it.
 */
export async function autocomplete(args: readonly string[], options: LoadOptions): Promise<void> {
  try {
    const config = await Config.load(options);
    await addFish(config);
    if (isForFish(args, config.shell)) return await processTerminal.out(scriptOf('fish', config));
    // oclif's own listener would throw it, past every `catch`.
    let failure: NodeJS.ErrnoException | undefined;
    process.stdout.removeAllListeners('error').on('error', (error) => (failure ??= error));
    await run([...args], config);
    await setImmediate(); // A stream reports what was written at once in the next turn.
    if (failure) throw outputFailed(failure);
    await flush();
    if (!isRun(args)) return;
    const functions = join(config.cacheDir, 'autocomplete', 'functions');
    await writeFile(join(functions, 'bash', `${config.bin}.bash`), scriptOf('bash', config));
    await writeFile(join(functions, 'zsh', `_${config.bin}`), scriptOf('zsh', config));
  } catch (error) {
    await reportFailure(error, args, options);
  }
}

/** Lets the help and the errors of the plugin's commands speak of fish. */
async function addFish(config: Config): Promise<void> {
  for (const id of COMMANDS) {
    const loadable = config.findCommand(id, { must: true });
    for (const command of [loadable, await loadable.load()]) {
      command.args['shell']!.options = [...SHELLS, 'powershell'];
      command.examples = (command.examples ?? []).flatMap((example) =>
        typeof example === 'string' && example.endsWith(' zsh')
          ? [example, example.replace(/zsh$/, 'fish')]
          : [example],
      );
    }
  }
}

/** Whether fish is asked for by name, or no shell is named and the user's shell is fish. */
function isForFish(args: readonly string[], userShell: string): boolean {
  const [command, shell, ...more] = args[1] === 'script' ? [args[0], ...args.slice(2)] : args;
  return command !== 'help' && more.length === 0 && (shell ?? userShell) === 'fish';
}

/** Whether the plugin has written its scripts, and not only shown help. */
function isRun(args: readonly string[]): boolean {
  return args[0] === 'autocomplete' && args[1] !== 'script' && !args.some((arg) => arg === '--help' || arg === '-h');
}
