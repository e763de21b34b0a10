import { writeFileSync } from 'node:fs';
import { references } from './references.ts';

/** Writes the parts of `docs/` that repeat the code. */
for (const [name, text] of Object.entries(references())) writeFileSync(new URL(`../docs/${name}`, import.meta.url), text);
