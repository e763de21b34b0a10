import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tempFolder } from './temp.ts';

/** Writes a new configuration file and returns its path. */
export function configFile(text: string): string {
  const path = join(tempFolder(), 'svc-api.yaml');
  writeFileSync(path, text);
  return path;
}
