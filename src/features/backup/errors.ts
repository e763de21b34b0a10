import { defineErrors } from '../../keys/basics/index.ts';

/** Error codes of backups, and of restoring them. */
export const errors = defineErrors({
  BACKUP_EXISTS: {
    meaning: 'The file that the backup or export would write already exists.',
    causes: ['the backup was made before', 'the name has no date in it'],
    remedy: 'Choose another name. With `--overwrite`, the file is replaced once the new one is complete.',
  },
  BACKUP_INVALID: {
    meaning: 'The file is not a usable backup. Nothing was changed.',
    causes: [
      'it is incomplete: the disk was full, or a copy was interrupted',
      'it is not an SQLite file, or is damaged',
      'an entry of its audit log was changed',
    ],
    remedy:
      'Use another backup. If the backup was just made, check the disk, and make it again. If only its audit log is ' +
      'broken, you can [import its keys](backup.md#if-the-audit-log-of-a-backup-is-broken).',
  },
  BACKUP_UNAVAILABLE: {
    meaning: 'The file of the backup or export cannot be read or written.',
    causes: [
      'the file or its folder does not exist, or this user is not allowed to use it',
      'the path is that of a folder or a pipe. For a file to write, also that of a symbolic link',
      'the disk is full',
    ],
    remedy: 'Check the path, and the access rights of the user.',
  },
  STORE_NOT_EMPTY: {
    meaning: '`apikey export --to` only copies a store into an empty one, and the other store is not empty.',
    causes: ['the other store has keys already', 'the copy was made before'],
    remedy: 'Choose an empty store, or remove the one that is there.',
  },
  RESTORE_BLIND: {
    meaning:
      'The store cannot be read, or the backup is of another store. `restore` therefore cannot find out which keys were revoked since the backup.',
    causes: [
      'the store is lost, empty or damaged',
      'a newer version of svc-api has written it',
      'the backup is of another store: the first entries of the audit logs differ',
    ],
    remedy:
      'Check the path first. `--force` restores the backup as it is: every key that was deleted or ' +
      'disabled since then works again. See [Restoring](backup.md#on-a-new-machine-or-without-a-comparison).',
  },
  RESTORE_OUTDATED: {
    meaning: 'Keys were changed while the backup was compared with the store. Nothing was restored.',
    causes: ['a person or a script changed keys before you answered the question'],
    remedy: 'Run the command again, and read the new comparison.',
  },
});
