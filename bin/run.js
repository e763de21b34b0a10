#!/usr/bin/env node
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import { refuseUnsupportedNode } from './node-version.js';

refuseUnsupportedNode();
module.enableCompileCache?.();
const { execute } = await import('@oclif/core/execute');
const [command] = process.argv.slice(2);
// The commands `help` and `autocomplete` are added here and not by package.json, where a host would get them from us as well.
const core = ['@oclif/plugin-help'];
// What scripts call starts without what they have no use for.
if (command !== 'apikey' && command !== 'serve') core.push('@oclif/plugin-autocomplete');
const loadOptions = { root: fileURLToPath(import.meta.url), pluginAdditions: { core } };
// Not awaited: with a pipe that its reader closes early, a top-level await would end in exit code 13.
void (command?.startsWith('autocomplete') ? complete() : execute({ loadOptions }));

async function complete() {
  const { autocomplete } = await import('../dist/cli/completion/autocomplete.js');
  await autocomplete(process.argv.slice(2), loadOptions);
}
