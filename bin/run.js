#!/usr/bin/env node
import module from 'node:module';
import { refuseUnsupportedNode } from './node-version.js';

refuseUnsupportedNode();
module.enableCompileCache?.();
const { execute } = await import('@oclif/core/execute');
// The `help` command is added here and not by package.json, where a host would get it from us as well.
// Not awaited: with a pipe that its reader closes early, a top-level await would end in exit code 13.
void execute({ dir: import.meta.url, loadOptions: { pluginAdditions: { core: ['@oclif/plugin-help'] } } });
