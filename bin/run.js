#!/usr/bin/env node
import { fileURLToPath } from 'node:url';
import { enableCompileCache } from './compile-cache.js';
import { refuseUnsupportedNode } from './node-version.js';

refuseUnsupportedNode();
// By default, Node would open its inspector, which shows all memory and runs what it is told.
process.on('SIGUSR1', () => {});
enableCompileCache();
const [{ run }, { flush }] = await Promise.all([import('@oclif/core/run'), import('@oclif/core/flush')]);
const [command] = process.argv.slice(2);
// `help` and `autocomplete` are added here, not in package.json, from which a host would get them too.
const core = ['@oclif/plugin-help'];
// Scripts run `apikey` and `serve`, which start faster without completion.
if (command !== 'apikey' && command !== 'serve') core.push('@oclif/plugin-autocomplete');
const loadOptions = { root: fileURLToPath(import.meta.url), pluginAdditions: { core } };
// Not awaited: when the reader of a pipe closes it early, a top-level await would exit with 13.
void (command?.startsWith('autocomplete') ? complete() : start());

async function complete() {
  const { autocomplete } = await import('../dist/cli/completion/autocomplete.js');
  await autocomplete(process.argv.slice(2), loadOptions);
}

/** As oclif's `execute` does, without repeating a secret that was typed in place of a command. */
async function start() {
  try {
    await run(process.argv.slice(2), loadOptions);
    await flush();
  } catch (error) {
    const [{ handle }, { shownError }] = await Promise.all([
      import('@oclif/core/handle'),
      import('../dist/cli/errors.js'),
    ]);
    await handle(shownError(error));
  }
}
