'use strict';

// What bin/run.js is in the image of a container, where all is one file and there are no plugins.
// By default, Node would open its inspector, which shows all memory and runs what it is told.
process.on('SIGUSR1', () => {});
const { readFileSync } = require('node:fs');
const { join } = require('node:path');

require(join(__dirname, 'stand-in-for-user.cjs')).standInForUser();
const root = join(__dirname, '..');
const target = join(root, 'dist/program.cjs');
const program = require(target);
const typed = process.argv.slice(2);
// Of oclif's `help`, the flag is none; the colours of help follow it all the same.
const args = typed[0] === 'help' ? typed.filter((arg) => arg !== '--no-color') : typed;
const pjson = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
pjson.oclif.commands = { strategy: 'explicit', target, identifier: 'commands' };
pjson.oclif.helpClass = { target, identifier: 'Help' };
const options = { root, pjson, userPlugins: false };
const isVersion =
  ['version', '--version', '-v', '-V'].includes(args[0]) && !args.includes('--help') && !args.includes('-h');
const run = () => (isVersion ? program.printVersion(pjson.version, args) : program.run(args, options));
void run().catch((error) => program.reportFailure(error, args, options));
