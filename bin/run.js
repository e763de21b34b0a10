#!/usr/bin/env node
import { createRequire } from 'node:module';
import { refuseUnsupportedNode } from './node-version.js';

// CommonJS: an `import` of Node's modules reads all that they have, which loads their lazy parts.
const require = createRequire(import.meta.url);
refuseUnsupportedNode();
// By default, Node would open its inspector, which shows all memory and runs what it is told.
process.on('SIGUSR1', () => {});
require('./stand-in-for-user.cjs').standInForUser();
requireBuild();
require('./compile-cache.cjs').enableCompileCache();
const typed = process.argv.slice(2);
const [command] = typed;
// Of oclif's `help`, the flag is none; the colours of help follow it all the same.
const args = command === 'help' ? typed.filter((arg) => arg !== '--no-color') : typed;
const root = require('node:path').dirname(import.meta.dirname);
// `help` and `autocomplete` are added here, not in package.json, from which a host would get them too.
const core = ['@oclif/plugin-help'];
const isServer = command === 'serve' || command === 'guard' || (command === 'apikey' && args[1] === 'guard');
// Scripts run `apikey` and servers, which start faster without completion; what completes them knows all commands.
if ((command !== 'apikey' || args[1] === 'complete') && !isServer) core.push('@oclif/plugin-autocomplete');
const pluginAdditions = { core };
// Not awaited: when the reader of a pipe closes it early, a top-level await would exit with 13.
const subject = command === 'help' ? args[1] : command;
void (subject?.startsWith('autocomplete') ? complete() : start());

/** In a checkout, `npm ci` alone builds nothing. */
function requireBuild() {
  if (require('node:fs').existsSync(require('node:path').join(import.meta.dirname, '../dist/program.cjs'))) return;
  process.stderr.write('Error: svc-api is not built yet. Run "npm run build" in its checkout.\n');
  process.exit(1);
}

async function complete() {
  const { optionsOfPackages } = require('./program.cjs');
  const { autocomplete } = await import('../dist/cli/completion/autocomplete.js');
  await autocomplete(args, { ...optionsOfPackages(root), pluginAdditions });
}

/** As oclif's `execute` does, with failures in the form of ours. */
async function start() {
  const { boundYoungSpace, bundledProgram } = require('./program.cjs');
  if (!isServer) boundYoungSpace();
  const program = bundledProgram(root, args);
  const options = { ...program.options, pluginAdditions };
  try {
    await program.run(args, options);
    program.keepCode();
  } catch (error) {
    await program.reportFailure(error, args, options);
  }
}
