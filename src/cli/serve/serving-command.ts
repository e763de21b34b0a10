import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { BaseCommand } from '../base-command.ts';
import { CliError } from '../errors.ts';
import { hostExtensions, hostPrefix } from '../host.ts';
import { commandText } from '../output.ts';
import {
  configOfPrimary,
  type ConfigSource,
  ownConfig,
  reloadingOf,
  reportRefused,
  reportTaken,
  type StartConfig,
  startConfig,
} from './config-source.ts';
import type { ServeOptions } from './options.ts';
import { announce, FLUSH_MS, leave, listenForStop, serviceManager, type StopSignal } from './service-manager.ts';
import type { ConfigFile } from '../../config/config-file.ts';
import type { Config, ServerSettings } from '../../config/config.ts';
import type { SchemaExtension } from '../../graphql/index.ts';
import { type Catalog, createCatalog, type OwnNames, vocabularyOf } from '../../keys/permissions/index.ts';

import { debug, formatTime, isDebugged, millisecondsSince } from '../../keys/basics/index.ts';
import type { ChangeSource } from '../../keys/repository/index.ts';
import type { Log } from '../../log.ts';
import type { ConfiguredServer, StartService } from '../../service/configured-server.ts';
import type { OpenKeys } from '../../service/open-keys.ts';
import type { Telemetry, TelemetryOptions, TelemetryRoom } from '../../feature.ts';

const EVERY_MS = 3_600_000;
/** The free share of a file from which space is returned: a smaller one is soon used again. */
const FREE_SHARE = 0.25;

/** Runs all pieces of work, unless it should stop between two. @returns the result after the last one */
async function finished<Result>(
  work: AsyncGenerator<void, Result>,
  isStopped: () => boolean,
): Promise<Result | undefined> {
  for (;;) {
    const { done, value } = await work.next();
    if (done) return value;
    await yieldToEventLoop();
    if (isStopped()) return undefined;
  }
}

/**
 * Prunes the audit log once an hour, as configured, and returns free space.
 * @param present the service with the present configuration
 * @returns a function that stops this, and resolves once no work is running
 */
function keepUp(present: () => ConfiguredServer, log: Log): () => Promise<void> {
  let isStopped = false;
  const prune = async () => {
    const { keys, config } = present();
    if (config.audit.keep === null) return;
    try {
      const pruning = keys.audit.keep(config.audit.keep);
      const pruned = await finished(pruning, () => isStopped);
      if (pruned) log.info({ ...pruned }, 'pruned the audit log, as configured');
    } catch (error) {
      log.warn({ err: error }, 'the audit log could not be pruned');
    }
  };
  const compact = async () => {
    try {
      const freedBytes = await finished(present().keys.compact(FREE_SHARE), () => isStopped);
      if (freedBytes) log.info({ freedBytes }, 'returned free space of the store to the file system');
    } catch (error) {
      log.debug({ err: error }, 'free space could not be returned');
    }
  };
  let running = prune();
  const timer = setInterval(() => (running = running.then(prune).then(compact)), EVERY_MS);
  timer.unref();
  return () => {
    isStopped = true;
    clearInterval(timer);
    return running;
  };
}

/** How long a request can wait for the store's lock, including one that a large import holds. */
const LOCK_WAIT_MS = 2000;
const WRITE_WAIT_MS = 5000;

const IN_CLEAR =
  'keys cross the network without encryption: use TLS (--tls-cert, --tls-key), or listen on 127.0.0.1 behind a proxy with TLS';

/** Options for opening keys that are not in a store. */
export interface Opening {
  readonly config: Config;
  readonly catalog: Catalog;
  readonly maxVerifiedKeys: number | undefined;
  readonly telemetry: Telemetry | undefined;
}

/** The service to run, and the number of processes. */
interface Serving extends ServeOptions {
  readonly database: string | undefined;
  /** The path of the configuration that the user named. */
  readonly config: string | undefined;
  /** Called before the store is opened. @throws an error that stops the server from starting */
  check?(config: Config, catalog: Catalog): void;
  readonly start: StartService;
  /** Opens keys that are not in a store, and need no maintenance. Default: opens the key store. */
  readonly open?: (opening: Opening) => Promise<OpenKeys>;
  /** True if it answers GraphQL. */
  readonly hasGraphQL?: boolean;
  /** The path after the address in the log line about listening. */
  readonly logPath?: string;
}

interface Configured {
  config: Config;
  /** Tuning settings: flags and environment over the configuration. */
  settings: ServerSettings;
  extensions: readonly SchemaExtension[];
  ofHost: OwnNames;
}

interface ServingContext extends Omit<Serving, 'count' | 'config'> {
  /** True if this is one of several processes. */
  isWorker: boolean;
  source: ConfigSource;
  /** The source of changes in a PostgreSQL store, in a worker. */
  changes: ChangeSource | undefined;
  /** Resolves once this process takes over the work that only one process of a machine does. */
  turn: Promise<void>;
  stop: StopSignal;
  onListening: (url: string) => void;
}

/** The base of commands that serve: processes, signals, the log, the store, and the configuration while it changes. */
export abstract class ServingCommand extends BaseCommand {
  static override enableJsonFlag = false;

  protected override readonly defaultLevel = 'info';

  /** Serves until a signal ends it. */
  protected async serve({ count, config, ...serving }: Serving): Promise<void> {
    const workers = await import('./workers.ts');
    const isWorker = workers.isWorker();
    const log = this.openedLog!;
    const stop = isWorker ? workers.listenForOrder() : listenForStop();
    let start: StartConfig | undefined;
    const manager = serviceManager(isWorker ? {} : process.env, log);
    // The first process passes it on to its workers.
    process.on('SIGHUP', () => void (start && manager.reload(reloadingOf(start, log))));
    if (!isWorker) start = await startConfig(config, process.env);
    const { isInClear, SOCKET_UMASK } = await import('../../http/listen-address.ts');
    const announceListening = (url: string) => {
      announce(url);
      if (isInClear(url)) log.warn({ url }, IN_CLEAR);
      manager.ready(`Listening on ${url}`);
    };
    void stop.received.then(() => manager.stopping());
    if (count > 1 && start) {
      const socketMask = serving.address.socket === undefined ? undefined : SOCKET_UMASK;
      const listen = async () => {
        const { listenForChanges } = await import('../../service/open-keys.ts');
        return listenForChanges({ database: serving.database, lockWaitMs: LOCK_WAIT_MS });
      };
      const shared = { count, socketMask, log, stop, config: start, listen, onListening: announceListening };
      const scraped = await this.serveWorkerMetrics(serving, start);
      try {
        process.exitCode = await workers.runWorkers(shared);
      } finally {
        await scraped?.stop();
      }
    } else {
      const source = start ? ownConfig(start, log) : await configOfPrimary();
      try {
        const onListening = isWorker ? workers.reportListening : announceListening;
        const changes = isWorker ? workers.changesOfPrimary() : undefined;
        const turn = isWorker ? workers.turnOfWorker() : Promise.resolve();
        await this.serveHere({ ...serving, isWorker, source, changes, turn, stop, onListening });
      } finally {
        source.stop();
        // Any other parent process keeps its channel to this one.
        if (isWorker) workers.leaveWorkers();
      }
    }
  }

  override async catch(failure: Error & { code?: string }): Promise<void> {
    // A stopped reader of stderr must not keep a server from ending, which may be about to be restarted.
    setTimeout(() => this.terminal.stopWaiting(), FLUSH_MS).unref();
    await super.catch(failure);
  }

  protected override async finally(failure: Error | undefined): Promise<void> {
    await super.finally(failure);
    if (this.openedLog) await leave(this.openedLog, this.failedExit);
  }

  /** Serves from this process until told to stop. */
  private async serveHere(context: ServingContext): Promise<void> {
    const configured = await this.configured(context, context.source.first);
    const place = metricsPlace(context, configured);
    const metrics = place && context.isWorker ? 'primary' : place;
    const telemetry = await this.startTelemetry({ ...context.telemetry, metrics });
    try {
      await this.serveStore(context, configured, telemetry);
    } finally {
      await telemetry?.stop();
    }
    // After a signal, the exporter of traces would retry for further seconds, and nothing else can end that.
    if (context.telemetry.traces) setTimeout(() => process.exit(), 2 * FLUSH_MS).unref();
  }

  /** Reads the configuration. @throws KeysError CONFIG_INVALID */
  private async configured({ settings }: Pick<Serving, 'settings'>, file: ConfigFile | undefined): Promise<Configured> {
    const { parseConfig } = await import('../../config/load-config.ts');
    const extensions = await hostExtensions(this.config);
    const ofHost = vocabularyOf(...extensions, { prefix: hostPrefix(this.config) });
    const config = await parseConfig(file, ofHost);
    return { config, settings: { ...config.server, ...settings }, extensions, ofHost };
  }

  private async serveStore(
    context: ServingContext,
    { config, settings, extensions, ofHost }: Configured,
    telemetry: Telemetry | undefined,
  ): Promise<void> {
    const { database, source, check, start, logPath = '', stop, onListening, address, tls } = context;
    const { keepAlive, maxConnections, maxConnectionsPerAddress, maxVerifiedKeys } = settings;
    const [{ openValidKeys }, { parseConfig }, { additionsIn, ConfiguredServer }, { withBackground }, { allFeatures }] =
      await Promise.all([
        import('../../service/open-keys.ts'),
        import('../../config/load-config.ts'),
        import('../../service/configured-server.ts'),
        import('../../service/background.ts'),
        import('../../features/index.ts'),
      ]);
    const additions = await additionsIn(config, ofHost);
    const catalog = createCatalog(additions);
    check?.(config, catalog);
    const hasStore = context.open === undefined;
    let keys = context.open
      ? await context.open({ config, catalog, maxVerifiedKeys, telemetry })
      : await openValidKeys(
          {
            database,
            timer: telemetry?.metrics?.storeTimer,
            ...additions,
            maxVerifiedKeys,
            lockWaitMs: LOCK_WAIT_MS,
            writeWaitMs: WRITE_WAIT_MS,
          },
          context.changes,
        );
    try {
      if (hasStore) await this.reportStore(keys, context);
      telemetry?.metrics?.measure(keys);
      const watchers = telemetry?.watchers ?? [];
      const limits = {
        ...(maxConnections !== undefined && { connections: maxConnections }),
        ...(maxConnectionsPerAddress !== undefined && { connectionsPerAddress: maxConnectionsPerAddress }),
      };
      const keepAliveMs = keepAlive && keepAlive * 1000;
      const server = { ...address, tls, keepAliveMs, limits, log: this.logger, watchers };
      const { hasGraphQL = false, turn } = context;
      const beside = {
        features: allFeatures(),
        hasGraphQL,
        turn,
        log: this.logger,
      };
      const started = hasStore ? withBackground(start, beside, telemetry?.metrics) : start;
      const configured = await ConfiguredServer.start({ keys, config, extensions, ofHost }, server, started);
      source.follow(async (file) => {
        try {
          const changed = await parseConfig(file, ofHost);
          await configured.take(changed);
          keys = configured.keys;
          telemetry?.metrics?.measure(keys);
          reportTaken(changed, this.logger);
          return true;
        } catch (error) {
          reportRefused(error, this.logger);
          return false;
        }
      });
      const stopKeepingUp = hasStore ? keepUp(() => configured, this.logger) : undefined;
      const { service } = configured;
      await collectGarbage();
      stop.serving();
      onListening(service.server.url);
      const from = {
        ...service.details,
        ...telemetry?.details,
        ...(config.file !== undefined && { config: config.file }),
      };
      const url = address.socket === undefined ? service.server.url + logPath : service.server.url;
      this.logger.info({ url, store: keys.location, ...from }, 'listening');
      const reason = await stop.received;
      this.logger.info({ reason }, 'stopping');
      await Promise.all([service.stop(), stopKeepingUp?.()]);
    } finally {
      await keys.close();
    }
  }

  /** Starts the requested parts of telemetry. Others are not even loaded. */
  private async startTelemetry(options: Omit<TelemetryOptions, 'log' | 'features'>): Promise<Telemetry | undefined> {
    const isAsked = options.requestLog || options.traces || options.metrics !== undefined;
    if (!isAsked && !isDebugged()) return undefined;
    const { room, features } = await telemetryRoom(isAsked);
    return room?.start({ ...options, features, log: this.logger });
  }

  private async serveWorkerMetrics(
    serving: Pick<Serving, 'settings' | 'telemetry'>,
    { file }: StartConfig,
  ): Promise<{ stop(): Promise<void> } | undefined> {
    if (serving.telemetry.metricsPort === undefined) return undefined;
    const place = metricsPlace(serving, await this.configured(serving, file))!;
    const { room } = await telemetryRoom(true);
    return room!.serveWorkers(place, this.logger);
  }

  /** Logs facts about the store. @throws CliError CLOCK_BEHIND */
  private async reportStore(keys: OpenKeys, { acceptsClock }: ServingContext): Promise<void> {
    const store = keys.location;
    if (!(await keys.audit.matchesKey()))
      this.logger.error(
        { store },
        'the newest entry of the audit log was not made with the key of SVC_API_AUDIT_KEY: ' +
          `run ${commandText(this.config, 'apikey:log')} --verify`,
      );
    if (keys.created) this.logger.warn({ store }, 'created a new key store, which has no keys yet');
    for (const problem of await keys.settingProblems()) this.logger.warn({ store }, problem);
    const behindMs = await keys.store.clockBehindMs();
    if (behindMs > 0 && !acceptsClock) throw clockBehind(keys.clock(), behindMs);
    if (behindMs > 0) this.logger.warn({ behindMs }, 'the clock is behind the newest entry of the audit log');
    keys.watchHearing((problem) => {
      const fields = { store, ...(problem && { reason: problem.message }) };
      if (problem) this.logger.warn(fields, 'change notifications are lost: every request asks the store');
      else this.logger.info(fields, 'change notifications arrive again');
    });
  }
}

/** The refusal to start with a clock that is behind: expired keys would be accepted again. */
function clockBehind(now: number, behindMs: number): CliError {
  return new CliError(
    'CLOCK_BEHIND',
    `The clock says ${formatTime(now)}, but the newest entry of the audit log was written at ${formatTime(now + behindMs)}. ` +
      'Expired keys could be accepted again. Set the clock; if it is right, pass --accept-clock.',
  );
}

/**
 * Loads the feature that shows requests.
 * @throws CliError USAGE if it is required, and no feature provides it
 */
async function telemetryRoom(isRequired: boolean) {
  const { allFeatures } = await import('../../features/index.ts');
  const features = allFeatures();
  const [provided] = features.flatMap(
    ({ provides }) => provides?.['telemetry'] ?? [],
  ) as (() => Promise<TelemetryRoom>)[];
  if (!provided && isRequired)
    throw new CliError(
      'USAGE',
      'This program does not have the feature "telemetry", which the request log, metrics and traces need: choose it ' +
        'too, or unset SVC_API_REQUEST_LOG, SVC_API_METRICS_PORT and the variables of OpenTelemetry.',
    );
  return { room: await provided?.(), features };
}

/** The address of metrics; undefined for none. */
function metricsPlace(
  { telemetry: { metricsPort: port } }: Pick<Serving, 'telemetry'>,
  { settings: { metricsHost = '127.0.0.1' } }: Pick<Configured, 'settings'>,
): { host: string; port: number } | undefined {
  // In a URL, an IPv6 address has brackets.
  return port === undefined ? undefined : { host: metricsHost.replace(/^\[(.*)\]$/, '$1'), port };
}

/**
 * Collects garbage of a server's start: V8 would do so only when it needs more memory, which an idle server does not.
 * The inspector session is internal and opens no port. Without an inspector, such as under Node's permission model, the
 * memory stays in use.
 */
async function collectGarbage(): Promise<void> {
  const began = performance.now();
  try {
    // An `import()` would load the whole module of Node.
    const { Session } = process.getBuiltinModule('node:inspector');
    const session = new Session();
    session.connect();
    await new Promise<void>((resolve) => session.post('HeapProfiler.collectGarbage', () => resolve()));
    session.disconnect();
    debug('what the start had left was collected', () => ({ durationMs: millisecondsSince(began) }));
  } catch (error) {
    debug('what the start had left is kept', () => ({ err: error }));
  }
}
