import { writeFileSync } from 'node:fs';
import { manifestOf } from './manifest-of.ts';

/** Writes `oclif.manifest.json`, so that starting one command does not load all of them. */
writeFileSync(new URL('../oclif.manifest.json', import.meta.url), await manifestOf());
