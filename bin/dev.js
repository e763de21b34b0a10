#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { execute } from '@oclif/core/execute';
import { refuseUnsupportedNode } from './node-version.js';
import '../scripts/jsx.ts';

refuseUnsupportedNode();
const root = fileURLToPath(new URL('..', import.meta.url));
const pjson = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
pjson.oclif.commands = { strategy: 'explicit', target: './scripts/commands.ts', identifier: 'commands' };
pjson.oclif.helpClass = './src/cli/help/own-help.ts';
// Runs the sources with Node's own type stripping, regardless of any build.
void execute({ loadOptions: { root, pjson, ignoreManifest: true, pluginAdditions: { core: ['@oclif/plugin-help'] } } });
