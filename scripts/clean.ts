import { rmSync } from 'node:fs';

/** Removes the previous build, so that deleted sources leave nothing in the package. */
rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true });
