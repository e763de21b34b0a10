import type { Hono } from 'hono';
import {
  amount,
  count,
  duration,
  anything,
  checkOptions,
  having,
  invalidOption,
  list,
  options as optionsIn,
  required,
  type Rules,
  text,
} from '../keys/options.ts';
import { COMMON_OPTIONS } from './bearer-options.ts';
import type { CertificateFiles } from './certificate.ts';
import { endpointOf } from './endpoints.ts';
import { continueWhenRead } from './expect-continue.ts';
import { serveRequests, type ServerLimits, type ServerOptions, type StartedServer } from './serve-requests.ts';
import { ServedApp } from './served-app.ts';

/** What to serve, and where. */
export type ListenOptions = ServerOptions & {
  /** A Hono app, such as that of `createApp`. */
  // oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
  app: Hono<any>;
};

/** A server that accepts requests. */
export interface RunningServer extends StartedServer {
  /** Serves another app from the next request on. Requests in flight are finished by the previous one. */
  // oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
  replaceApp(app: Hono<any>): void;
}

/** The options of all kinds of addresses. */
type AnyListenOptions = { [Name in keyof ListenOptions]?: ListenOptions[Name] } & Pick<ListenOptions, 'app'>;
const OPTIONS: Rules<AnyListenOptions> = {
  // oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
  app: required(having<Hono<any>>('an app of Hono, such as createApp gives', 'fetch')),
  host: text,
  port: amount,
  socket: text,
  fd: amount,
  tls: optionsIn<CertificateFiles>({ cert: required(text), key: required(text) }),
  keepAliveMs: duration,
  limits: optionsIn<ServerLimits>({
    headersMs: amount,
    requestMs: amount,
    connections: count,
    connectionsPerAddress: count,
    unreadMs: amount,
    unreadBytesPerConnection: amount,
    unreadBytes: amount,
  }),
  log: COMMON_OPTIONS.log,
  watchers: list(anything),
};

/**
 * Starts an HTTP server.
 * @throws KeysError OPTION_INVALID; LISTEN_FAILED if the address is not available; TLS_INVALID for a certificate that
 *   cannot be used
 * @example
 * const server = await listen({ app, host: '127.0.0.1', port: 0 });
 * await server.stop();
 */
export async function listen(given: ListenOptions): Promise<RunningServer> {
  checkOptions('listen', given, OPTIONS);
  const { app, ...options } = given;
  const { socket, ...others } = options as AnyListenOptions;
  const rival = (['host', 'port'] as const).find((name) => name in others);
  if (socket !== undefined && rival)
    throw invalidOption('listen', `"socket" and "${rival}" exclude one another. Give one of them.`);
  let served = new ServedApp(app);
  const server = await serveRequests(
    {
      get clients() {
        return served.clients;
      },
      endpointOf: ({ url }) => endpointOf(url),
      handle: (incoming, outgoing) => served.handle(incoming, outgoing),
      handleExpecting: (incoming, outgoing) => {
        continueWhenRead(incoming, outgoing);
        served.handle(incoming, outgoing);
      },
      handleUnknownExpectation: (incoming, outgoing) => served.answerProxy(incoming, outgoing),
      refusedConnection: (reason, address) => served.logs.refusals?.add('connection refused', { reason, address }),
    },
    options,
  );
  return {
    url: server.url,
    replaceApp(next) {
      const previous = served;
      served = new ServedApp(next);
      // One that takes its place may log on in the same sums.
      if (previous.logs.refusals !== served.logs.refusals) previous.finishLogs();
    },
    replaceCertificate: (files) => server.replaceCertificate(files),
    async stop(graceMs) {
      await server.stop(graceMs);
      served.finishLogs();
    },
  };
}
