import { defineErrors } from './table.ts';

/** The program itself, its configuration and its installation. */
export const PROGRAM_ERRORS = defineErrors({
  OUTPUT_FAILED: {
    meaning: 'The output could not be written. The error says whether anything was changed.',
    causes: [
      'the disk is full',
      'stdout is closed, or its reader has exited',
      'a command that prints a secret was started with the null device open for reading and writing, as with ' +
        "`stdio: 'ignore'` of Node, `DEVNULL` of Python or `StandardOutput=null` of systemd. svc-api takes that for a closed stdout",
    ],
    remedy:
      'Free up space, or write the output elsewhere, and run the command again. If the secret of a new key was lost, the key was removed.',
  },
  LISTEN_FAILED: {
    meaning: '`serve` cannot listen on its address.',
    causes: [
      'another program uses the port',
      'the host is not an address of this machine',
      'the port needs root',
      'another server listens on the socket, or its path is not a socket',
      'systemd passes several sockets, or one that does not accept connections',
    ],
    remedy:
      'Choose another `--port`, `--host` or `--socket`. Port 0 picks a free port. For a socket from systemd, correct its unit.',
  },
  TLS_INVALID: {
    meaning: 'The certificate of `serve`, or its key, cannot be used. The error names the file and the reason.',
    causes: [
      'the file does not exist, or this user cannot read it',
      'other users can read the key',
      'the key belongs to another certificate, or is encrypted',
      'the file is not in PEM',
    ],
    remedy: 'Correct the file. See [TLS](deploying.md#tls).',
  },
  CONFIG_INVALID: {
    exit: 2,
    meaning: 'The configuration, `svc-api.yaml`, is invalid. A running server keeps the configuration that it has.',
    causes: [
      'it is not YAML or JSON',
      'a field is misspelled, or a value breaks the rule of its field',
      'a role has a permission of a resource that is not declared',
    ],
    remedy:
      'The message has the line and column of each error. An editor that knows ' +
      '[the JSON Schema](configuration.md) shows most of them while you type.',
  },
  CONFIG_INSECURE: {
    meaning: 'Other users can write to the configuration, and so could give keys more access.',
    causes: [
      'its mode lets every user write to it',
      'the file, or a link to it, belongs to another user who is not root',
    ],
    remedy: 'Check what is in the file. Then change its owner or its mode: `chown root`, `chmod o-w`.',
  },
  CONFIG_UNAVAILABLE: {
    meaning: 'The configuration cannot be read.',
    causes: [
      '`--config` or `SVC_API_CONFIG` names a file that does not exist',
      'this user cannot read it',
      '`routes` or `notices` needs the file, and there is none',
      'for `notices test`: the file has no `notices`, or the secret is missing',
    ],
    remedy: 'Correct the path, or let the user read the file. See [Notices](notices.md).',
  },
  SCHEMA_INVALID: {
    meaning: 'The part of the GraphQL schema that a CLI or a program adds is invalid.',
    causes: [
      'a hook `svc-api:schema` fails, or returns an unexpected value',
      'a root field lacks `@requires` or, in a schema that was passed to `createApp`, is not in `requires`',
      'a schema that was passed to `createApp` has `@requires` on a field that is not in `requires`',
      'a resource has an invalid name',
      'the hook declares or resolves something that is built in',
    ],
    remedy:
      'The error names the plugin, or the fields. See [the hook](library/cli-schema.md) and ' +
      '[A schema of your own](library/service.md#a-schema-of-your-own).',
  },
  FEATURE_INVALID: {
    meaning: "A plugin's part of svc-api, or a choice of features, is invalid.",
    causes: [
      'a hook `svc-api:feature` fails, or returns an unexpected value',
      'a field has the same name as one of svc-api or another plugin',
      'a field has an unknown kind, or a property with a wrong name or value',
      'a migration of its tables fails, or a table is not named after it',
      'an endpoint has the same path as another one',
      'it needs a feature that is not available, or is made for another version of svc-api',
      'a CLI or a program chooses a feature that svc-api does not have',
      'a program adds or chooses features after svc-api was imported, or in a module with a top-level await',
    ],
    remedy:
      'The error names the plugin: update or uninstall it. See [Plugins](plugins.md#what-can-go-wrong). Or it names the ' +
      'feature: correct its name. See [Choose features](library/features.md).',
  },
  FEATURE_FAILED: {
    status: 500,
    graphql: true,
    meaning:
      'A step or a port of a plugin failed, and nothing was changed. Or a command waited for a part of a plugin that ' +
      'never finished.',
    causes: [
      'the plugin refused the change with an error that has no code',
      'the plugin has a defect, or a statement that the database refuses',
      'a part of a plugin never finished',
    ],
    remedy:
      'The error names the plugin: update or uninstall it. For its author, ' +
      '[Steps](plugins/keys.md#steps-when-keys-change) says how a plugin refuses a change.',
  },
  HOST_INVALID: {
    meaning: 'A CLI that has svc-api as a plugin has an invalid setting for it.',
    causes: [
      '`oclif["svc-api"].database` in its package.json is neither a path nor a `postgres://` URL',
      '`"svc-api"` in its package.json has a setting other than `features` and `prefix`, or one of them has a wrong value',
    ],
    remedy:
      'Correct the package.json of the CLI. Until then, you can choose a store with `--database` or `SVC_API_DATABASE`.',
  },
  OPTION_INVALID: {
    meaning: 'A function of the library got an invalid option. The error names it.',
    causes: [
      'its name is misspelled, such as `permissions` for `permission`',
      'its value is undefined or empty, such as that of an unset environment variable',
      'a permission names an unknown resource: pass your own resources to `openKeys({ resources })`',
      '`openKeys(…)` is not awaited',
    ],
    remedy: 'Correct the option, or leave it out. See [The library](library/checking.md#options).',
  },
  GRAPHQL_UNSUPPORTED: {
    meaning: '`serve` loaded a version of graphql that does not work. The error names the version and its place.',
    causes: ['a package.json sets the version of graphql for all packages, with `overrides` or `resolutions`'],
    remedy:
      'Remove that setting, or add `"graphql": "^16.8.1"` to its dependencies. Then install again, and run `npm dedupe`.',
  },
  NODE_UNSUPPORTED: {
    meaning: 'A CLI that has svc-api as a plugin runs on a version of Node that svc-api does not support.',
    causes: ['an older Node comes first in `PATH`'],
    remedy: 'Run the CLI on one of the versions named in the error.',
  },
  DRIVER_UNSUPPORTED: {
    meaning: "No binary of SQLite's driver, better-sqlite3, runs on this machine. The error says why.",
    causes: [
      'its glibc is older than 2.34: Debian 11, Ubuntu 20.04, RHEL 8',
      'it is not x64 or arm64, or does not run Linux, macOS or Windows',
    ],
    remedy:
      'Install svc-api again on the machine, or compile better-sqlite3 where it is installed: see ' +
      '[Installing](installing.md#the-driver-of-sqlite). Or use [PostgreSQL](postgresql.md), or a newer system.',
  },
});
