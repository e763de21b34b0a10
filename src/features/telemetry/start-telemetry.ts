import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  ClientAddresses,
  COMMON_OPTIONS,
  endpointOf,
  notesOf,
  notingFor,
  type OpenedStore,
  REQUEST_ID,
  type RequestWatcher,
} from '../../http/index.ts';
import { checkOptions, options as optionsIn, required, text, yesOrNo } from '../../keys/basics/index.ts';
import { SERVICE } from '../../keys/service/index.ts';
import { type Log, NO_LOG } from '../../log.ts';
import type { StoreTimer } from '../../store/index.ts';

/** Options for logs, metrics and traces of the requests of this process. */
export interface TelemetryOptions {
  /** Writes a line to `log` for each request, at level info. Default: false. */
  requestLog?: boolean;
  /**
   * Provides metrics for Prometheus. A host that already exposes those of its process and of Node leaves them out with
   * `{ process: false }`. Default: false.
   */
  metrics?: boolean | { process: boolean };
  /** Traces requests with OpenTelemetry's packages, configured by their variables. Default: false. */
  traces?: boolean;
  /** Default: nothing is logged. */
  log?: Log;
  /** Path that the service is mounted at, such as `/keys`, for the names of endpoints in `watch`. Default: `/`. */
  base?: string;
  /** Networks of proxies whose headers `watch` believes. Default: this machine. */
  trust?: readonly string[];
}

/** Logs, metrics and traces of the requests of this process. */
export interface Telemetry {
  /** Watchers to pass to `listen`. */
  readonly watchers: readonly RequestWatcher[];
  /** For `openKeys`, as `timer`: without it, metrics do not know how long the store takes. */
  readonly storeTimer: StoreTimer | undefined;
  /** Adds metrics of these keys. */
  measure(keys: OpenedStore): void;
  /**
   * Watches a request that has arrived at another server than that of `listen`, before anything else has seen it, and
   * gives its answer an `X-Request-Id`. A request is watched once, however often this is called.
   */
  watch(incoming: IncomingMessage, outgoing: ServerResponse): void;
  /** The metrics in the text format of Prometheus, and its media type. Without metrics, there is nothing in it. */
  exposition(): Promise<{ type: string; text: string }>;
  /** Sends pending data. */
  stop(): Promise<void>;
}

const METRICS_OPTIONS = optionsIn<{ process: boolean }>({ process: required(yesOrNo) });

/**
 * Starts logs, metrics and traces of the requests of this process. It loads only what the options ask for. If traces
 * cannot be sent, the log says so, and requests are not affected.
 * @throws KeysError OPTION_INVALID
 * @example
 * const telemetry = await startTelemetry({ metrics: true, requestLog: true, log: await openLog('info') });
 * const keys = await openKeys({ timer: telemetry.storeTimer });
 * telemetry.measure(keys);
 * const server = await listen({ app: await createApp({ keys }), port: 4000, watchers: telemetry.watchers });
 */
export async function startTelemetry(options: TelemetryOptions): Promise<Telemetry> {
  checkOptions<TelemetryOptions>('startTelemetry', options, {
    requestLog: yesOrNo,
    metrics: (value, name) => (typeof value === 'boolean' ? undefined : METRICS_OPTIONS(value, name)),
    traces: yesOrNo,
    log: COMMON_OPTIONS.log,
    base: text,
    trust: COMMON_OPTIONS.trust,
  });
  const { requestLog = false, metrics = false, traces = false, log = NO_LOG, base = '', trust } = options;
  const [{ openTelemetry }, { allFeatures }, expose] = await Promise.all([
    import('./telemetry.ts'),
    import('../index.ts'),
    metrics ? import('./metrics.ts') : undefined,
  ]);
  const clients = new ClientAddresses(trust);
  const opened = await openTelemetry({ requestLog, metrics, traces, log, features: allFeatures() });
  const { watchers } = opened;
  const mountedAt = base.replace(/\/$/, '');
  const places = { clients, endpointOf: (incoming: IncomingMessage) => endpointAt(mountedAt, incoming) };
  const note = notingFor(places, watchers);
  return {
    watchers,
    storeTimer: opened.metrics?.storeTimer,
    measure: (keys) => opened.metrics?.measure(keys[SERVICE]),
    watch(incoming, outgoing) {
      if (notesOf(incoming)) return;
      note(incoming, outgoing);
      outgoing.setHeader(REQUEST_ID, notesOf(incoming)!.id);
    },
    async exposition() {
      const text = (await opened.metrics?.text()) ?? '';
      return { type: expose?.CONTENT_TYPE ?? 'text/plain', text };
    },
    stop: () => opened.stop(),
  };
}

/** The endpoint of a request to a mounted service. Routers remove the matched part from its URL. */
function endpointAt(base: string, incoming: IncomingMessage & { originalUrl?: string }) {
  const url = incoming.originalUrl ?? incoming.url ?? '';
  if (base === '') return endpointOf(url);
  return url.startsWith(base) && /^(?:$|[/?])/.test(url.slice(base.length))
    ? endpointOf(url.slice(base.length).replace(/^(?!\/)/, '/'))
    : 'other';
}
