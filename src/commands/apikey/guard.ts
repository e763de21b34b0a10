import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { examplesOf } from '../../cli/base-command.ts';
import { exclusiveFlags, permissionsFlag } from '../../cli/input/key-flags.ts';
import { CliError } from '../../cli/errors.ts';
import { readNumber, readOptions, readUpstream, ServingCommand, servingFlags } from '../../cli/serve/index.ts';
import { printable } from '../../keys/basics/index.ts';
import type { AskedGuard } from '../../service/guard-service.ts';

const PORT = 8080;
const TIMEOUT_S = 60;

export default class Guard extends ServingCommand {
  static override summary = 'Put a key in front of a service: a proxy that asks for one.';
  static override description =
    'Requests with a key that may pass go to the service at <upstream>, without the key, with X-Auth-Key-Id, ' +
    'X-Auth-Key-Name, X-Auth-Roles and X-Auth-Permission; the others are answered 401 or 403, in a browser by a page ' +
    'to sign in, unless svc-api.yaml has "sign-in: off". The service must be reachable by the guard alone. Without ' +
    '--permission and --any-key, the routes of svc-api.yaml decide, and may name other services, by "upstreams". ' +
    'Connections, memory and more: "server" in svc-api.yaml.';
  static override usage = '<%= command.id %> [UPSTREAM] [flags]';
  static override examples = examplesOf([
    [
      'Guard a service on this machine, on http://127.0.0.1:8080',
      'http://127.0.0.1:3000 --permission DASHBOARD:READ_ANY',
    ],
    ['Let routes decide', 'http://127.0.0.1:3000'],
    ['Guard all upstreams of svc-api.yaml', ''],
    [
      'Send the service a key of its own, which callers never see',
      'http://127.0.0.1:8989 --resource SONARR --send-header X-Api-Key=@sonarr.key',
    ],
    [
      'Guard a service for other machines, by TLS',
      'http://127.0.0.1:3000 --any-key --host :: --tls-cert cert.pem --tls-key key.pem',
    ],
  ]);
  static override args = {
    upstream: Args.string({
      description:
        'Where the service listens: http://127.0.0.1:3000, https://app.internal, http+unix:///run/app.sock. For all ' +
        'requests but those of routes that name another one.',
      ignoreStdin: true,
    }),
  };
  static override flags = {
    permission: permissionsFlag('Permissions that a key needs to pass, all of them: comma-separated, or repeated.'),
    resource: Flags.string({
      description: 'Resource that a key needs READ_ANY, CREATE_ANY, UPDATE_ANY or DELETE_ANY on, by the method.',
      helpValue: '<resource>',
    }),
    methods: Flags.string({
      description: 'Let any method pass by a --permission to read, which otherwise allows GET, HEAD and OPTIONS alone.',
      options: ['any'],
      helpValue: 'any',
    }),
    'any-key': Flags.boolean({ description: 'Any valid key may pass.' }),
    'pass-credential': Flags.boolean({ description: 'Pass the key on to the service, too.' }),
    'rewrite-host': Flags.boolean({
      description: "Send the service its own address as the Host, in place of the client's.",
    }),
    'send-header': Flags.string({
      description: 'Header that the service gets, with the content of a file, in place of what callers send.',
      helpValue: '<name>=@<file>',
      multiple: true,
    }),
    timeout: Flags.string({
      description: `How long the service may take to begin its answer. Default: ${TIMEOUT_S}.`,
      helpValue: '<seconds>',
    }),
    'health-path': Flags.string({
      description: 'Path at which the guard itself says, without a key, whether it can let requests pass.',
      helpValue: '<path>',
    }),
    ...servingFlags(PORT),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Guard);
    const { database, config, permission: permissions, resource, methods, 'any-key': anyKey } = flags;
    if (permissions && anyKey) throw exclusiveFlags('--permission', '--any-key');
    if (resource !== undefined && anyKey) throw exclusiveFlags('--resource', '--any-key');
    if (resource !== undefined && permissions) throw exclusiveFlags('--resource', '--permission');
    if (methods !== undefined && !permissions)
      throw new CliError('USAGE', '--methods goes with --permission. Pass both, or leave it out.');
    const [upstream, { checkGuard, guardService }] = await Promise.all([
      readUpstream(args.upstream, flags),
      import('../../service/guard-service.ts'),
    ]);
    const asked: AskedGuard = {
      permissions,
      anyKey,
      resource,
      anyMethod: methods === 'any',
      upstream,
      passCredential: flags['pass-credential'],
      timeoutMs: (readNumber(flags.timeout, '--timeout', 3600) ?? TIMEOUT_S) * 1000,
      healthPath: readHealthPath(flags['health-path']),
    };
    await this.serve({
      ...readOptions(flags, process.env, PORT),
      database,
      config,
      check: (configuration, catalog) => checkGuard(asked, configuration, catalog),
      start: guardService(asked, this.logger),
    });
  }
}

function readHealthPath(path: string | undefined): string | undefined {
  if (path === undefined || /^\/[\w./~-]*$/.test(path)) return path;
  throw new CliError('USAGE', `--health-path is "${printable(path)}". Give a path, such as /guard/health.`);
}
