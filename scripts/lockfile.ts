import { writeFileSync } from 'node:fs';
import { lockfileOf } from './lockfile-of.ts';

/** Runs after each `npm install`, which writes the lockfile anew. */
writeFileSync(new URL('../package-lock.json', import.meta.url), lockfileOf());
