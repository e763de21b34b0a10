import * as Flags from '@oclif/core/flags';
import { BaseCommand } from '../cli/base-command.ts';
import { CliError } from '../cli/errors.ts';
import { hostExtensions } from '../cli/host.ts';
import { stopSignal } from '../cli/serve/signals.ts';
import { printable } from '../keys/text.ts';
import { logLevelOf, openLog } from '../log.ts';

/** How long a request may wait for the store's lock. */
const LOCK_WAIT_MS = 2000;

interface ServeOptions {
  database: string | undefined;
  host: string;
  port: number;
  workers: typeof import('../cli/serve/workers.ts');
}

export default class Serve extends BaseCommand {
  static override enableJsonFlag = false;
  static override summary = 'Serve a GraphQL endpoint that requires an API key.';
  static override description =
    'POST /graphql requires "Authorization: Bearer <API key>"; GET /healthz and GET /readyz are open. ' +
    'Keys that are created, changed or deleted while it runs take effect with the next request. ' +
    'SIGINT or SIGTERM stops it once the requests in flight have finished, after 10 seconds at most; a second signal ' +
    'stops it at once.';
  static override examples = [
    { description: 'Serve on http://127.0.0.1:4000', command: '<%= config.bin %> serve' },
    { description: 'Serve on a free port, which is printed', command: '<%= config.bin %> serve --port 0' },
    { description: 'Serve with four processes', command: '<%= config.bin %> serve --workers 4' },
  ];
  static override flags = {
    host: Flags.string({
      description: 'Address to listen on. Default: SVC_API_HOST, or 127.0.0.1.',
      helpValue: '<address>',
    }),
    port: Flags.string({
      description: 'Port to listen on; 0 picks a free one. Default: SVC_API_PORT, or 4000.',
      helpValue: '<port>',
    }),
    workers: Flags.string({
      description: 'Number of processes that share the port, up to 256; one that exits is replaced. Default: 1.',
      helpValue: '<number>',
    }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Serve);
    const port =
      readPort(flags.port, '--port') ?? readPort(process.env['SVC_API_PORT'] || undefined, 'SVC_API_PORT') ?? 4000;
    const host = readHost(flags.host) ?? (process.env['SVC_API_HOST'] || '127.0.0.1');
    const count = readWorkers(flags.workers);
    this.logger = await openLog(logLevelOf(process.env) ?? 'info');
    const workers = await import('../cli/serve/workers.ts');
    if (count > 1 && !workers.isWorker()) {
      process.exitCode = await workers.runWorkers({
        count,
        log: this.logger,
        onListening: (url) => this.announce(url),
      });
      return;
    }
    try {
      await this.serve({ database: flags.database, host, port, workers });
    } finally {
      workers.leaveWorkers();
    }
  }

  /** Serves from this process until told to stop. */
  private async serve({ database, host, port, workers }: ServeOptions): Promise<void> {
    const [{ openKeys }, { createApp }, { listen }] = await Promise.all([
      import('../open-keys.ts'),
      import('../create-app.ts'),
      import('../http/server.ts'),
    ]);
    const extensions = await hostExtensions(this.config);
    const resources = extensions.flatMap((extension) => extension.resources ?? []);
    const keys = await openKeys({ database, resources, lockWaitMs: LOCK_WAIT_MS });
    try {
      if (!(await keys.matchesAuditKey()))
        this.logger.error(
          { store: keys.location },
          'the newest entry of the audit log was not made with the key of SVC_API_AUDIT_KEY: run apikey log --verify',
        );
      if (keys.created) this.logger.warn({ store: keys.location }, 'created a new key store, which has no keys yet');
      const behindMs = keys.clockBehindMs();
      if (behindMs > 0) this.logger.warn({ behindMs }, 'the clock is behind the latest time that the store has seen');
      keys.watchHearing((problem) => {
        const fields = { store: keys.location, ...(problem && { reason: problem.message }) };
        if (problem) this.logger.warn(fields, 'changes of keys are not heard: every request asks the store');
        else this.logger.info(fields, 'changes of keys are heard again');
      });
      const app = await createApp({ keys, extensions, log: this.logger });
      const server = await listen({ app, host, port });
      if (workers.isWorker()) workers.reportListening(server.url);
      else this.announce(server.url);
      this.logger.info({ url: `${server.url}/graphql`, store: keys.location }, 'listening');
      const reason = await (workers.isWorker() ? workers.stopOrder() : stopSignal());
      this.logger.info({ reason }, 'stopping');
      await server.stop();
      await keys.rememberTime().catch((error: unknown) => this.logger.debug({ err: error }, 'the time was not kept'));
    } finally {
      await keys.close();
    }
  }

  /** Prints where it listens; a closed stdout does not stop the server. */
  private announce(url: string): void {
    try {
      this.terminal.out(`Listening on ${url}\n`);
    } catch (error) {
      this.logger.debug({ err: error }, 'stdout is closed');
    }
  }
}

function readPort(value: string | undefined, from: string): number | undefined {
  if (value === undefined) return undefined;
  const port = /^\d{1,5}$/.test(value) ? Number(value) : Number.NaN;
  if (!(port <= 65_535))
    throw new CliError('USAGE', `${from} is "${value}", which is not a port. Give a number from 0 to 65535.`);
  return port;
}

function readWorkers(value: string | undefined): number {
  const count = value === undefined ? 1 : /^\d{1,3}$/.test(value) ? Number(value) : Number.NaN;
  if (!(count >= 1 && count <= 256))
    throw new CliError('USAGE', `--workers is "${printable(value ?? '')}". Give a number from 1 to 256.`);
  return count;
}

function readHost(value: string | undefined): string | undefined {
  if (value !== undefined && value.trim() === '')
    throw new CliError('USAGE', '--host is empty. Give an address to listen on, such as 127.0.0.1.');
  return value;
}
