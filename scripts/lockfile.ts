import { writeFileSync } from 'node:fs';
import { lockfileOf } from './lockfile-of.ts';

/**
 * Called by npm after it has changed `node_modules` (`dependencies`), and at the end of `npm install`, which can
 * rewrite the lockfile alone (`postprepare`: npm 12 asks users who install a packed file to approve a `prepare`).
 */
writeFileSync(new URL('../package-lock.json', import.meta.url), lockfileOf());
