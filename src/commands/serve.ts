import * as Flags from '@oclif/core/flags';
import { readFastCgiPort } from '../cli/serve/address.ts';
import { readOptions } from '../cli/serve/options.ts';
import { ServingCommand } from '../cli/serve/serving-command.ts';
import { servingFlags } from '../cli/serve/serving-flags.ts';

const PORT = 4000;

export default class Serve extends ServingCommand {
  static override summary = 'Serve a GraphQL endpoint that requires an API key.';
  static override description =
    '/graphql requires "Authorization: Bearer <API key>"; GET /healthz and GET /readyz are open. ' +
    'Keys that are created, changed or deleted while it runs take effect with the next request. ' +
    'SIGINT or SIGTERM stops it once the requests in flight have finished, after 10 seconds at most; a second signal ' +
    'stops it at once.';
  static override examples = [
    { description: 'Serve on http://127.0.0.1:4000', command: '<%= config.bin %> serve' },
    { description: 'Serve on a free port, which is printed', command: '<%= config.bin %> serve --port 0' },
    { description: 'Serve with four processes', command: '<%= config.bin %> serve --workers 4' },
    {
      description: 'Serve by TLS, to other machines',
      command: '<%= config.bin %> serve --host :: --tls-cert cert.pem --tls-key key.pem',
    },
    {
      description: 'Serve to a proxy on this machine',
      command: '<%= config.bin %> serve --socket /run/svc-api/api.sock',
    },
  ];
  static override flags = {
    ...servingFlags(PORT),
    'fastcgi-port': Flags.string({
      description:
        'Port at which Apache asks by FastCGI whether requests may pass. Default: SVC_API_FASTCGI_PORT, or none.',
      helpValue: '<port>',
    }),
    'no-console': Flags.boolean({
      description: 'Leave out the console at /console: pages on which people sign in with a key and manage keys.',
    }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Serve);
    const { database, config } = flags;
    const { serveApp } = await import('../serve-app.ts');
    await this.serve({
      ...readOptions(flags, process.env, PORT),
      database,
      config,
      logPath: '/graphql',
      start: serveApp({ fastCgiPort: readFastCgiPort(flags, process.env), console: !flags['no-console'] }),
    });
  }
}
