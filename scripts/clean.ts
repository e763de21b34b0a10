import { rmSync } from 'node:fs';

/** Removes the previous build: files that were deleted from the sources must not stay in the package. */
rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true });
