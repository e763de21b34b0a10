import { defineErrors } from './table.ts';

/** Changes that the existing keys, or the rights of the caller, do not allow. */
export const KEY_ERRORS = defineErrors({
  NAME_TAKEN: {
    status: 409,
    graphql: true,
    meaning: 'Another key has this name.',
    causes: ['the key was created before, perhaps by another run of the same script'],
    remedy:
      'Choose another name. `--overwrite` replaces the key: it gets a new secret, and the old one stops working at ' +
      'once. To keep the old one working for a while, use `apikey rotate`.',
    remedyIn: {
      flags: 'Pass --overwrite to replace it, or choose another name.',
      schema: 'Set overwrite to replace it, or choose another name.',
    },
  },
  NAME_CONFUSABLE: {
    status: 409,
    graphql: true,
    meaning: 'The name looks like that of another key, in other characters, such as a Cyrillic letter for a Latin one.',
    causes: ['the name was copied from elsewhere', 'somebody wants one key to be taken for another'],
    remedy:
      'Choose a name that cannot be mistaken. On the key store itself this is a warning; from a server, an error.',
  },
  NOT_FOUND: {
    status: 404,
    graphql: true,
    meaning: 'There is no such key. Over HTTP also: there is nothing at this address.',
    causes: ['the name is misspelled', 'the key was deleted', 'another key store is meant'],
    remedy: 'Run `svc-api apikey list` to see all keys, and check `--database` and `SVC_API_DATABASE`.',
  },
  FORBIDDEN: {
    status: 403,
    graphql: true,
    meaning:
      'The key that asks for it may not do this. Over GraphQL, `extensions.missing` lists the permissions that it lacks.',
    causes: ['the key lacks the permission that the error names', 'it would grant more than it holds'],
    remedy: 'Grant the key the permission, or make the change on the key store itself.',
  },
  ROTATION_IN_PROGRESS: {
    graphql: true,
    meaning: 'The key has two secrets already, the most that it can have, and the new one was not the last in use.',
    causes: ['it was rotated, and the grace of the previous secret has not ended'],
    remedy: 'End that rotation with `apikey rotate --finish` or `--rollback`, then rotate again.',
    remedyIn: {
      flags: 'Or end that rotation, with --finish or --rollback.',
      schema: 'End one of them first, by finishApiKeyRotation or rollBackApiKeyRotation.',
    },
  },
  ROTATION_NONE: {
    graphql: true,
    meaning: 'The key has only one secret: there is no rotation to end.',
    causes: ['the grace has ended already', '`--finish` or `--rollback` was run before'],
    remedy: 'There is nothing to do.',
  },
  POLICY_VIOLATED: {
    status: 403,
    graphql: true,
    meaning: 'The `policy` of `svc-api.yaml` does not allow it. The error names the rule with its value.',
    causes: [
      'the key would never expire, or end too late',
      'a key grants what only the command line may grant, on the key store itself',
      'a key would have created too many live keys',
    ],
    remedy: 'Do what the error says, or change the [policy](configuration.md#policy).',
  },
  CHAIN_TOO_LONG: {
    status: 403,
    graphql: true,
    meaning: 'More than 16 keys would have created one another.',
    causes: ['each key creates the next one, in a loop'],
    remedy: 'Create the key with one of the first ones, or make one of them independent by `apikey adopt`.',
  },
  LIMIT_EXCEEDED: {
    exit: null,
    graphql: true,
    meaning: 'A GraphQL document is larger than is allowed. Over GraphQL only.',
    causes: ['it has too many fields, levels or fragments'],
    remedy: 'Ask for less at once; see [the limits](http.md#limits).',
  },
});
