import { writeFileSync } from 'node:fs';
import { manifestsOf } from './manifest-of.ts';

/** Writes `oclif.manifest.json`, so that starting one command does not load all of them. */
const { host, own } = await manifestsOf();
writeFileSync(new URL('../oclif.manifest.json', import.meta.url), host);
writeFileSync(new URL('../dist/oclif.manifest.json', import.meta.url), own);
