import { writeFileSync } from 'node:fs';
import { lockfileOf } from './lockfile-of.ts';

/**
 * npm runs this when it has changed `node_modules` (`dependencies`), and at the end of `npm install`, which may rewrite
 * the lockfile alone (`postprepare`: npm 12 asks those who install a packed file to approve a `prepare`).
 */
writeFileSync(new URL('../package-lock.json', import.meta.url), lockfileOf());
