/** The error codes, by the part of the program that they are about. */
import { BACKUP_ERRORS } from './backups.ts';
import { CONSENT_ERRORS } from './consent.ts';
import { KEY_ERRORS } from './keys.ts';
import { PROGRAM_ERRORS } from './program.ts';
import { SERVER_ERRORS } from './servers.ts';
import { STORE_ERRORS } from './store.ts';
import { defineErrors } from './table.ts';
import { TRANSFER_ERRORS } from './transfer.ts';
import { VALUE_ERRORS } from './values.ts';

export * from './backups.ts';
export * from './consent.ts';
export * from './keys.ts';
export * from './program.ts';
export * from './servers.ts';
export * from './store.ts';
export * from './table.ts';
export * from './transfer.ts';
export * from './values.ts';

/** All codes that a `KeysError` can carry. */
export const ERRORS = defineErrors({
  ...VALUE_ERRORS,
  ...KEY_ERRORS,
  ...TRANSFER_ERRORS,
  ...CONSENT_ERRORS,
  ...STORE_ERRORS,
  ...BACKUP_ERRORS,
  ...SERVER_ERRORS,
  ...PROGRAM_ERRORS,
});
