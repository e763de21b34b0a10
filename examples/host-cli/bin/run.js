#!/usr/bin/env node
import { execute } from '@oclif/core';

// Not awaited: when the reader of a pipe closes it early, a top-level await would exit with 13.
void execute({ dir: import.meta.url });
