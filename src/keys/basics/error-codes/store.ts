import { defineErrors } from './table.ts';

/** Failures of the key store. */
export const STORE_ERRORS = defineErrors({
  STORE_UNAVAILABLE: {
    meaning: 'The key store cannot be opened, or does not answer.',
    causes: [
      'the path or the address is wrong',
      'there is no store yet. It is created by the first key, or by the first start of a server',
      'another user created the store, and this one is not allowed to open it',
      'the PostgreSQL server is down, refuses the user, or does not have the database',
      'the version of Node is not supported',
    ],
    remedy:
      'Check `--database` and `SVC_API_DATABASE`. Run the command as the user that owns the store, or `chown` the ' +
      'file and its folder. See also [Troubleshooting](operations.md#troubleshooting).',
  },
  STORE_LOCKED: {
    meaning: 'Another process locked the store for longer than this one could wait.',
    causes: ['a backup or another tool holds a lock on the file'],
    remedy: 'Try again in a moment. If it still fails, find the process that holds the lock.',
  },
  STORE_FULL: {
    meaning: 'The store cannot grow. Nothing was changed.',
    causes: ['the disk is full', 'a quota or a limit on file sizes is reached'],
    remedy: 'Free up space, and try again. You can still [delete and disable keys](operations.md#the-store-file).',
  },
  STORE_READONLY: {
    graphql: true,
    meaning: 'This user, or the user of the server, cannot write to the key store.',
    causes: [
      'the file, its folder or its file system is read-only',
      'the PostgreSQL user can only read, or the server is a standby',
    ],
    remedy: 'Run the command as the user that owns the store, or make it writable.',
  },
  STORE_INSECURE: {
    meaning: 'Other users can write to the store, or replace it.',
    causes: [
      'the file or its folder is writable for the group or for others',
      'the file is a link, or belongs to another user',
      'in Kubernetes, `fsGroup` makes the volume writable for the group',
    ],
    remedy:
      'Check the keys first, as someone may have added one. Then run the command in the error, or move the store ' +
      'to a folder of its own. With `SVC_API_STORE_MODE=shared`, svc-api accepts the store as it is. See [On a NAS](nas.md) and ' +
      '[Security](security.md).',
  },
  STORE_CORRUPT: {
    meaning: 'The file is damaged, or is not a key store.',
    causes: ['the path is that of another file', 'the disk is faulty', 'it was copied while it was being written'],
    remedy: 'Check the path. If it is right, restore a [backup](backup.md#restoring), and check the disk.',
  },
  STORE_REPLACED: {
    meaning: 'The file of the store was replaced while it was in use.',
    causes: ['a backup was restored under a running server', 'a `-wal` of the previous file was left beside it'],
    remedy:
      'Try again. Before you replace the file by hand, stop every program that uses it: see [Backup](backup.md#by-hand).',
  },
  STORE_FOREIGN: {
    meaning: 'The file or the database belongs to another program.',
    causes: [
      'the path is an SQLite file of another program',
      'the PostgreSQL schema has tables of the same names, or other roles can create objects in it',
    ],
    remedy: 'Choose another path, or give the store a database or schema of its own.',
  },
  STORE_NEWER: {
    meaning: 'A newer version of svc-api, or of a plugin, has written the store.',
    causes: ['two versions are installed', 'the program was downgraded'],
    remedy: 'Update svc-api, or the plugin named in the error.',
  },
  STORE_OLDER: {
    meaning: 'The store or the backup is from before the first release of svc-api.',
    causes: ['the program was installed from its sources before the first release'],
    remedy:
      'Run `apikey export --with-digests` with that version, and `apikey import` with this one, into a new store: see [Upgrading](deploying.md#from-before-the-first-release).',
  },
  STORE_AUDIT_KEY: {
    meaning: 'The key of the audit log cannot be used.',
    causes: [
      'the log of this store has a key, and `SVC_API_AUDIT_KEY` is not set',
      'its file cannot be read, does not hold 32 bytes, or can be read by other users',
    ],
    remedy:
      'Set `SVC_API_AUDIT_KEY` to the path of the file, which holds 32 bytes and has the mode 0600, or 0640 if it belongs to root.',
  },
  STORE_FAILED: {
    meaning:
      'The store failed for a reason that has no code of its own. The message has the code of the database driver.',
    causes: ['the disk or the database reports an error', 'a thread of the server ended during a change'],
    remedy: 'Try again. If it still fails, check the disk, and run the command with `LOG_LEVEL=debug`.',
  },
});
