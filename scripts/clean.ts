import { rmSync } from 'node:fs';

/** What was built before: a file that is gone from the sources must not stay in the package. */
rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true });
