import { examplesOf } from '../../../../cli/base-command.ts';
import { clockFlag, readOptions, ServingCommand, servingFlags } from '../../../../cli/serve/index.ts';
import { additionsTo } from '../../../index.ts';
import { guardFlags, readGuard, upstreamArg } from '../../cli/guard-flags.ts';

const PORT = 8080;

export default class Guard extends ServingCommand {
  static override group = 'Servers';
  static override isAtTop = true;
  static override summary = 'Protect a service with API keys: a proxy in front of it.';
  static override description =
    'Passes allowed requests on to the service at <upstream>, without the key and with X-Auth-Key-Id, ' +
    'X-Auth-Key-Name, X-Auth-Roles and X-Auth-Permission. Others get 401 or 403; browsers get a sign-in page, unless ' +
    'svc-api.yaml has "sign-in: off". Make sure that only the guard can reach the service. Without --permission, ' +
    '--resource and --any-key, the routes of svc-api.yaml decide, and can name other services from "upstreams". ' +
    '"server" in svc-api.yaml has limits of connections, memory and more.';
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
      'Guard a service for other machines, with TLS',
      'http://127.0.0.1:3000 --any-key --host :: --tls-cert cert.pem --tls-key key.pem',
    ],
  ]);
  static override args = { upstream: upstreamArg };
  static override flags = { ...guardFlags, ...servingFlags(PORT, additionsTo('apikey:guard')), ...clockFlag };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Guard);
    const [asked, { checkGuard, guardService }, { isWorker }, { holdersOfPrimary }] = await Promise.all([
      readGuard(args.upstream, flags),
      import('../../cli/guard-service.ts'),
      import('../../../../cli/serve/workers.ts'),
      import('../../holders-of-workers.ts'),
    ]);
    const holders = isWorker() ? holdersOfPrimary() : undefined;
    await this.serve({
      ...readOptions(flags, process.env, PORT),
      database: flags.database,
      config: flags.config,
      check: (configuration, catalog) => checkGuard(asked, configuration, catalog),
      start: guardService({ ...asked, holders }, this.logger),
    });
  }
}
