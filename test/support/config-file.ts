import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tempFolder } from './temp.ts';

/** The path of a new file of configuration. */
export function configFile(text: string): string {
  const path = join(tempFolder(), 'svc-api.yaml');
  writeFileSync(path, text);
  return path;
}
