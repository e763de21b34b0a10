#!/usr/bin/env node
import module from 'node:module';
import { refuseUnsupportedNode } from './node-version.js';

refuseUnsupportedNode();
module.enableCompileCache?.();
const { execute } = await import('@oclif/core/execute');
// Not awaited: with a pipe that its reader closes early, a top-level await would end in exit code 13.
void execute({ dir: import.meta.url });
