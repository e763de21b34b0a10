import { writeFileSync } from 'node:fs';
import { lockfileOf } from './lockfile-of.ts';

/**
 * npm runs this when it has changed `node_modules` (`dependencies`), and at the end of `npm install`, which may rewrite
 * the lockfile alone. That is `postprepare`, not `prepare`: npm 12 asks users to approve a packed file's `prepare`.
 */
writeFileSync(new URL('../package-lock.json', import.meta.url), lockfileOf());
