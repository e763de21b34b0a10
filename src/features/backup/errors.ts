import { defineErrors } from '../../keys/basics/index.ts';

/** Error codes of backups, and of restoring them. */
export const errors = defineErrors({
  BACKUP_EXISTS: {
    meaning: 'There is a file already where the backup or export would be.',
    causes: ['the backup was made before', 'the name has no date in it'],
    remedy: 'Choose another name. `--overwrite` replaces the file, once the new one is whole.',
  },
  BACKUP_INVALID: {
    meaning: 'The file is not a backup that can be used; nothing was changed.',
    causes: [
      'it was cut off, as by a full disk or a copy that was ended',
      'it is not an SQLite file, or is damaged',
      'its audit log was tampered with',
    ],
    remedy: 'Use another backup. Of one that was just being made, make it again, and check the disk.',
  },
  BACKUP_UNAVAILABLE: {
    meaning: 'The file of the backup or export cannot be read or written.',
    causes: [
      'it, or its folder, does not exist, or this user may not use it',
      'it is a folder, a pipe, or, where it is to be written, a symbolic link',
      'the disk is full',
    ],
    remedy: 'Check the path, and the rights of the user.',
  },
  RESTORE_BLIND: {
    meaning:
      'The present store cannot be read, or the backup is not one of it, so that nobody knows which keys were revoked since.',
    causes: [
      'the store is lost, empty or damaged',
      'a newer version of svc-api has written it',
      'the backup is of another store: their audit logs begin differently',
    ],
    remedy:
      'Check the path first. `--force` restores the backup as it is: every key that was deleted or ' +
      'disabled since then works again. See [Restoring](backup.md#into-a-new-store-or-without-a-comparison).',
  },
  RESTORE_OUTDATED: {
    meaning: 'Keys were changed while the backup was compared with the store. Nothing was restored.',
    causes: ['somebody, or a script, changed keys before the question was answered'],
    remedy: 'Run it again, and look at what it says then.',
  },
});
