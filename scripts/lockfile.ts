import { writeFileSync } from 'node:fs';
import { lockfileOf } from './lockfile-of.ts';

/** npm runs this after it has changed `node_modules`, and so the lockfile. */
writeFileSync(new URL('../package-lock.json', import.meta.url), lockfileOf());
