import { KeysError } from '../errors.ts';
import { printable } from '../text.ts';
import type { ApiKey } from './api-key.ts';

/** Refuses a damaged key, where what it says would be written elsewhere. @throws KeysError STORE_CORRUPT */
export function requireWhole({ name, damaged }: ApiKey): void {
  if (!damaged) return;
  throw new KeysError(
    'STORE_CORRUPT',
    `The API key "${printable(name)}" is damaged: its row in the key store does not match its checksum. ` +
      'Delete or replace it, or restore a backup.',
  );
}
