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
    meaning:
      'The name looks like that of another key, but has other characters, such as a Cyrillic letter for a Latin one.',
    causes: ['the name was copied from elsewhere', 'someone wants you to take one key for another'],
    remedy:
      'Choose a name that looks different. If the command opens the key store itself, this is only a warning. On a server, it is an error.',
  },
  NOT_FOUND: {
    status: 404,
    graphql: true,
    meaning: 'The key does not exist. Over HTTP also: page not found.',
    causes: ['the name is misspelled', 'the key was deleted', 'the key is in another key store'],
    remedy: 'Run `svc-api apikey list` to see all keys, and check `--database` and `SVC_API_DATABASE`.',
  },
  FORBIDDEN: {
    status: 403,
    graphql: true,
    meaning:
      'The requesting key is not allowed to do this. Over GraphQL, `extensions.missing` lists the permissions that it lacks.',
    causes: ['the key lacks the permission named in the error', 'it would grant more than it holds'],
    remedy: 'Grant the permission to the key, or run the command on the machine of the key store, without `--server`.',
  },
  ROTATION_IN_PROGRESS: {
    graphql: true,
    meaning: 'The key already has two secrets, which is the maximum, and its latest request did not use the new one.',
    causes: [
      'the client still uses the previous secret, and the grace period has not ended',
      'the client has used the new secret only for a few seconds: svc-api notices that with a delay',
    ],
    remedy:
      'Give the client the new secret, and try again some seconds after it is in use. Or end that rotation with ' +
      '`apikey rotate --finish` or `--rollback`, then rotate again.',
    remedyIn: {
      flags: 'Or end that rotation with --finish or --rollback.',
      schema: 'End that rotation first, with finishApiKeyRotation or rollBackApiKeyRotation.',
    },
  },
  ROTATION_NONE: {
    graphql: true,
    meaning: 'The key has only one secret: there is no rotation to end.',
    causes: ['the grace period has already ended', '`--finish` or `--rollback` was run before'],
    remedy: 'You need to do nothing.',
  },
  POLICY_VIOLATED: {
    status: 403,
    graphql: true,
    meaning: 'The `policy` of `svc-api.yaml` does not allow this change. The error names the rule with its value.',
    causes: [
      'the key would never expire, or expire too late',
      'a key would grant something that only the operator can grant, with a command on the key store',
      'a key would have created too many live keys',
    ],
    remedy: 'Follow the error, or change the [policy](configuration.md#policy).',
  },
  CHAIN_TOO_LONG: {
    status: 403,
    graphql: true,
    meaning: 'A chain of keys that created one another would be longer than 16 keys.',
    causes: ['each key creates the next one, in a loop'],
    remedy:
      'Create the key with an earlier key of the chain, or make one of them independent with `apikey update --detach`.',
  },
  LIMIT_EXCEEDED: {
    exit: null,
    graphql: true,
    meaning: 'A GraphQL document exceeds a limit.',
    causes: ['it has too many fields, levels or fragments'],
    remedy: 'Ask for less in one request. See [the limits](http.md#limits).',
  },
});
