import { BACKUP_CODES } from './backup.ts';
import type { Explanation } from './explanation.ts';
import { KEY_CODES } from './keys.ts';
import { PROGRAM_CODES } from './program.ts';
import { REMOTE_CODES } from './remote.ts';
import { STORE_CODES } from './store.ts';
import { VALUE_CODES } from './values.ts';

/** Every code that a command can show, by the part of the program that it is about. */
export const ERROR_CODES: Readonly<Record<string, Readonly<Record<string, Explanation>>>> = {
  'Commands and values': VALUE_CODES,
  Keys: KEY_CODES,
  'The key store': STORE_CODES,
  Backups: BACKUP_CODES,
  'Servers elsewhere': REMOTE_CODES,
  'The program': PROGRAM_CODES,
};
