import * as Flags from '@oclif/core/flags';
import { BaseCommand } from '../cli/base-command.ts';
import { commandText } from '../cli/command-text.ts';
import { hostExtensions } from '../cli/host.ts';
import { readOptions, type ServeOptions } from '../cli/serve/options.ts';
import { announce, FLUSH_MS, leave } from '../cli/serve/output.ts';
import { listenForStop, type StopSignal } from '../cli/serve/signals.ts';
import { logLevelOf, type OpenLog, openLog } from '../log.ts';

/** How long a request may wait for the store's lock, and how long for one that a large import holds. */
const LOCK_WAIT_MS = 2000;
const WRITE_WAIT_MS = 5000;

const NO_SEARCH_INDEX =
  'searches of keys read through all of them: create the extension pg_trgm and an index, as docs/storage.md shows';

interface ServeContext extends Omit<ServeOptions, 'count'> {
  database: string | undefined;
  stop: StopSignal;
  onListening: (url: string) => void;
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
    'max-connections': Flags.string({
      description:
        'Connections that each process has at a time. Default: 128 fewer than it may have open files, at most 20000.',
      helpValue: '<number>',
    }),
    'max-connections-per-address': Flags.string({
      description:
        'Of these, from one address, or one /64 of IPv6: set it for a proxy on another machine. ' +
        'Default: half of all; from loopback, all.',
      helpValue: '<number>',
    }),
    'max-verified-keys': Flags.string({
      description:
        'Accepted secrets that each process remembers, so that it need not ask the store: 1 KB of memory for each. ' +
        'Default: 100000.',
      helpValue: '<number>',
    }),
  };

  private openedLog: OpenLog | undefined;

  async run(): Promise<void> {
    const { flags } = await this.parse(Serve);
    const { count, ...options } = readOptions(flags, process.env);
    const log = await openLog(logLevelOf(process.env) ?? 'info');
    [this.openedLog, this.logger] = [log, log];
    const workers = await import('../cli/serve/workers.ts');
    const isWorker = workers.isWorker();
    const stop = isWorker ? workers.listenForOrder() : listenForStop();
    process.on('SIGHUP', () => !isWorker && log.info({ signal: 'SIGHUP' }, 'there is nothing to reload'));
    if (count > 1 && !isWorker)
      process.exitCode = await workers.runWorkers({ count, log, stop, onListening: announce });
    else {
      try {
        const onListening = isWorker ? workers.reportListening : announce;
        await this.serve({ ...options, database: flags.database, stop, onListening });
      } finally {
        workers.leaveWorkers();
      }
    }
  }

  override async catch(failure: Error & { code?: string }): Promise<void> {
    // A reader that does not read keeps no server from ending, which may be about to be started again.
    setTimeout(() => this.terminal.stopWaiting(), FLUSH_MS).unref();
    await super.catch(failure);
  }

  protected override async finally(failure: Error | undefined): Promise<void> {
    await super.finally(failure);
    if (this.openedLog) await leave(this.openedLog, this.failedExit);
  }

  /** Serves from this process until told to stop. */
  private async serve({ database, maxVerifiedKeys, stop, onListening, ...options }: ServeContext): Promise<void> {
    const [{ openKeys }, { createApp }, { listen }] = await Promise.all([
      import('../open-keys.ts'),
      import('../create-app.ts'),
      import('../http/server.ts'),
    ]);
    const extensions = await hostExtensions(this.config);
    const resources = extensions.flatMap((extension) => extension.resources ?? []);
    const keys = await openKeys({
      database,
      resources,
      maxVerifiedKeys,
      lockWaitMs: LOCK_WAIT_MS,
      writeWaitMs: WRITE_WAIT_MS,
    });
    try {
      if (!(await keys.matchesAuditKey()))
        this.logger.error(
          { store: keys.location },
          'the newest entry of the audit log was not made with the key of SVC_API_AUDIT_KEY: ' +
            `run ${commandText(this.config, 'apikey:log')} --verify`,
        );
      if (keys.created) this.logger.warn({ store: keys.location }, 'created a new key store, which has no keys yet');
      if (!(await keys.hasSearchIndex())) this.logger.info({ store: keys.location }, NO_SEARCH_INDEX);
      const behindMs = keys.clockBehindMs();
      if (behindMs > 0) this.logger.warn({ behindMs }, 'the clock is behind the latest time that the store has seen');
      keys.watchHearing((problem) => {
        const fields = { store: keys.location, ...(problem && { reason: problem.message }) };
        if (problem) this.logger.warn(fields, 'changes of keys are not heard: every request asks the store');
        else this.logger.info(fields, 'changes of keys are heard again');
      });
      const app = await createApp({ keys, extensions, log: this.logger });
      const server = await listen({ app, ...options });
      stop.serving();
      onListening(server.url);
      this.logger.info({ url: `${server.url}/graphql`, store: keys.location }, 'listening');
      const reason = await stop.received;
      this.logger.info({ reason }, 'stopping');
      await server.stop();
      await keys.rememberTime().catch((error: unknown) => this.logger.debug({ err: error }, 'the time was not kept'));
    } finally {
      await keys.close();
    }
  }
}
