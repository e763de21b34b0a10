import { examplesOf } from '../cli/base-command.ts';
import { commandText } from '../cli/output.ts';
import { clockFlag, readOptions, ServingCommand, servingFlags } from '../cli/serve/index.ts';
import { additionsTo } from '../features/index.ts';

const PORT = 4000;

/** A flag of the feature with the pages. */
interface ConsoleFlag {
  readonly 'no-console'?: boolean;
}

export default class Serve extends ServingCommand {
  static override group = 'Servers';
  static override summary = 'Serve a GraphQL endpoint that requires an API key.';
  static override description =
    '/graphql requires "Authorization: Bearer <API key>"; GET /healthz and GET /readyz are open. ' +
    'Changes of keys take effect with the next request. SIGINT or SIGTERM stops it after the requests in progress, ' +
    'within 10 seconds; a second signal stops it at once. Limits on connections and memory: "server" in svc-api.yaml.';
  static override usage = '<%= command.id %> [flags]';
  static override examples = examplesOf([
    ['Serve on http://127.0.0.1:4000', '<%= config.bin %> serve'],
    [
      'Serve other machines over TLS, with four processes',
      '<%= config.bin %> serve --host :: --tls-cert cert.pem --tls-key key.pem --workers 4',
    ],
    ['Serve to a proxy on this machine', '<%= config.bin %> serve --socket /run/svc-api/api.sock'],
  ]);
  static override flags = {
    ...servingFlags(PORT, additionsTo('serve')),
    ...clockFlag,
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Serve);
    const { database, config } = flags;
    const [{ serveApp }, { isWorker }] = await Promise.all([
      import('../service/create-app.ts'),
      import('../cli/serve/workers.ts'),
    ]);
    const commands = {
      create: commandText(this.config, 'apikey:create'),
      login: commandText(this.config, 'apikey:login'),
    };
    await this.serve({
      ...readOptions(flags, process.env, PORT),
      database,
      config,
      logPath: '/graphql',
      hasGraphQL: true,
      start: serveApp({ console: !(flags as ConsoleFlag)['no-console'], commands, isWorker: isWorker() }),
    });
  }
}
