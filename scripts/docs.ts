import { writeFileSync } from 'node:fs';
import { references } from './references.ts';

/** Writes the generated references. */
for (const [path, text] of Object.entries(await references()))
  writeFileSync(new URL(`../${path}`, import.meta.url), text);
