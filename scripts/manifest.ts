import { writeFileSync } from 'node:fs';
import { manifestOf } from './manifest-of.ts';

/** Writes `oclif.manifest.json`, which saves a start from loading every command. */
writeFileSync(new URL('../oclif.manifest.json', import.meta.url), await manifestOf());
