import type { ErrorCode, Issue } from '../../src/keys/basics/errors.ts';
import type { ImportWarning } from '../../src/keys/transfer/read-import.ts';
import type { REMOTE_CODES } from './remote.ts';
import type { VALUE_CODES } from './values.ts';
import type { Explanation } from './explanation.ts';

/** Codes of changes that the keys there are do not allow, and warnings about keys. */
type KeyCode = Exclude<
  ErrorCode,
  | Issue['code']
  | keyof typeof VALUE_CODES
  | `STORE_${string}`
  | `BACKUP_${string}`
  | `RESTORE_${string}`
  | `CONFIG_${string}`
  | keyof typeof REMOTE_CODES
  | 'OUTPUT_FAILED'
  | 'SCHEMA_INVALID'
  | 'LISTEN_FAILED'
  | 'TLS_INVALID'
  | `${string}_UNSUPPORTED`
  | 'HOST_INVALID'
  | 'OPTION_INVALID'
>;

/** Codes about the keys that there are. Nothing has been changed. */
export const KEY_CODES: Readonly<Record<KeyCode | ImportWarning['code'], Explanation>> = {
  NAME_TAKEN: {
    meaning: 'Another key has this name.',
    causes: ['the key was created before, perhaps by another run of the same script'],
    remedy:
      'Choose another name. `--overwrite` replaces the key: it gets a new secret, and the old one stops working at ' +
      'once. To keep the old one working for a while, use `apikey rotate`.',
  },
  NAME_CONFUSABLE: {
    meaning: 'The name looks like that of another key, in other characters, such as a Cyrillic letter for a Latin one.',
    causes: ['the name was copied from elsewhere', 'somebody wants one key to be taken for another'],
    remedy: 'Choose a name that cannot be mistaken. On the command line this is a warning; over GraphQL, an error.',
  },
  NOT_FOUND: {
    meaning: 'There is no such key.',
    causes: ['the name is misspelled', 'the key was deleted', 'another key store is meant'],
    remedy: 'Run `svc-api apikey list` to see all keys, and check `--database` and `SVC_API_DATABASE`.',
  },
  FORBIDDEN: {
    meaning: 'The key that asks for it may not do this. Over GraphQL only.',
    causes: ['the key lacks the permission that the error names', 'it would grant more than it holds'],
    remedy: 'Grant the key the permission, or make the change on the command line.',
  },
  ROTATION_IN_PROGRESS: {
    meaning: 'The key has two secrets already, the most that it can have, and the new one was not the last in use.',
    causes: ['it was rotated, and the grace of the previous secret has not ended'],
    remedy: 'End that rotation with `apikey rotate --finish` or `--rollback`, then rotate again.',
  },
  ROTATION_NONE: {
    meaning: 'The key has only one secret: there is no rotation to end.',
    causes: ['the grace has ended already', '`--finish` or `--rollback` was run before'],
    remedy: 'There is nothing to do.',
  },
  NOT_FOR_PEOPLE: {
    meaning: 'The key stands for a person who signs in: they have no secret, and are granted what their groups are.',
    causes: ['a person is to be rotated, replaced, declared, or given other grants'],
    remedy:
      'Change [`people`](console.md#people-without-a-key) in `svc-api.yaml`, or the groups of that person; or disable them.',
  },
  POLICY_VIOLATED: {
    meaning: 'The `policy` of `svc-api.yaml` does not allow it. The error names the rule with its value.',
    causes: [
      'the key would never expire, or end too late',
      'a key grants what only the command line may grant, on the key store itself',
      'a key would have created too many live keys',
    ],
    remedy: 'Do what the error says, or change the [policy](configuration.md#policy).',
  },
  REQUEST_DECIDED: {
    meaning: 'Somebody has agreed to the request of an application already, or refused it.',
    causes: ['the command was run before', 'another person has decided'],
    remedy: 'There is nothing to do. See `svc-api apikey log` for who it was; the application can ask again.',
  },
  CONSENT_OFF: {
    meaning: 'Applications may not ask for keys in that way, or not at all: `consent` in `svc-api.yaml` says so.',
    causes: [
      '`consent` is `off`, or names the other way',
      '`consent` is not there, and somebody else than `svc-api login` asks',
    ],
    remedy: 'Let them, if you want to, by [`consent`](consent.md#who-may-ask) in `svc-api.yaml` of the server.',
  },
  TOO_MANY_REQUESTS: {
    meaning: 'Applications ask for keys, or codes are tried, more often than is allowed. From a server only.',
    causes: ['a client asks again and again', 'somebody guesses codes'],
    remedy: 'Wait as long as the error says.',
  },
  SECRET_TAKEN: {
    meaning: 'A key to import has the secret of another key.',
    causes: ['the key was imported before, and it or its line was changed since', 'the key is in the file twice'],
    remedy: 'Remove the line.',
  },
  PREFIX_TAKEN: {
    meaning: 'A key to import has the prefix of another key.',
    causes: ['the key was imported before, and it or its line was changed since', 'the prefix was chosen by hand'],
    remedy: 'Remove the line, or its `prefix`: the key gets another one.',
  },
  ID_TAKEN: {
    meaning: 'A key to import has the id of another key.',
    causes: ['the key was imported before, and it or its line was changed since', 'the key is in the file twice'],
    remedy: 'Remove the line, or its `id`: the key gets another one.',
  },
  CHAIN_TOO_LONG: {
    meaning: 'More than 16 keys would have created one another.',
    causes: ['each key creates the next one, in a loop'],
    remedy: 'Create the key with one of the first ones, or make one of them independent by `apikey adopt`.',
  },
  PRUNE_REFUSED: {
    meaning: '`apply --prune` would delete keys that it may not delete.',
    causes: ['a key that the file no longer declares has created others, which would be deleted with it'],
    remedy:
      'Delete the keys that the error names, make them independent by `apikey adopt`, or declare what created them.',
  },
  TAKEOVER_REFUSED: {
    meaning: 'A declared key was created by another key, or got its name from one.',
    causes: ['the name that the file declares was taken by somebody else before the first `apply`'],
    remedy: 'Delete that key, or pass `--adopt` to make it yours with the secret that it has.',
  },
  LIMIT_EXCEEDED: {
    meaning: 'A GraphQL document is larger than is allowed. Over GraphQL only.',
    causes: ['it has too many fields, levels or fragments'],
    remedy: 'Ask for less at once; see [the limits](http.md#limits).',
  },
  SECRET_GUESSABLE: {
    meaning: 'A warning: the secret of an imported key could be guessed.',
    causes: ['it has fewer than 20 characters'],
    remedy: 'Rotate the key soon.',
  },
  EXPIRED: {
    meaning: 'A warning: an imported key has expired already, and will be refused.',
    causes: ['`expiresAt` is in the past'],
    remedy: 'If it is still wanted, give it another end by `apikey update`.',
  },
};
