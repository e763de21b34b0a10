import * as Flags from '@oclif/core/flags';
import { inGroup } from '../input/key-flags.ts';

/** The flags of what serves: where, by which certificate, in how many processes, and what each of them takes. */
export function servingFlags(port: number) {
  return {
    ...inGroup('ADDRESS AND TLS', {
      host: Flags.string({
        description: 'Address to listen on. Default: SVC_API_HOST, or 127.0.0.1.',
        helpValue: '<address>',
      }),
      port: Flags.string({
        description: `Port; 0 picks a free one. Default: SVC_API_PORT, or ${port}.`,
        helpValue: '<port>',
      }),
      socket: Flags.string({
        description: 'Unix socket to listen on. Default: SVC_API_SOCKET.',
        helpValue: '<path>',
      }),
      'tls-cert': Flags.string({
        description: 'Certificate chain in PEM, to serve by TLS. Default: SVC_API_TLS_CERT, or plain HTTP.',
        helpValue: '<path>',
      }),
      'tls-key': Flags.string({
        description: 'Private key, in PEM. Default: SVC_API_TLS_KEY.',
        helpValue: '<path>',
      }),
    }),
    ...inGroup('OPERATION', {
      workers: Flags.string({
        description: 'Number of processes, up to 256. Default: 1.',
        helpValue: '<number>',
      }),
      'request-log': Flags.boolean({
        description: 'Log one line for each request. Default: SVC_API_REQUEST_LOG, or off.',
      }),
      'metrics-port': Flags.string({
        description: 'Port of /metrics for Prometheus; 0 picks a free one. Default: SVC_API_METRICS_PORT, or none.',
        helpValue: '<port>',
      }),
    }),
    ...SETTING_FLAGS,
  };
}

/** What only tunes: help shows where it is set in svc-api.yaml instead. */
const SETTING_FLAGS = {
  'keep-alive': Flags.string({
    description: 'How many seconds a connection is kept for a further request: "server.keepAlive" in svc-api.yaml.',
    helpValue: '<seconds>',
    hidden: true,
  }),
  'max-connections': Flags.string({
    description: 'Connections that each process has at a time: "server.maxConnections" in svc-api.yaml.',
    helpValue: '<number>',
    hidden: true,
  }),
  'max-connections-per-address': Flags.string({
    description: 'Connections from one address: "server.maxConnectionsPerAddress" in svc-api.yaml.',
    helpValue: '<number>',
    hidden: true,
  }),
  'max-verified-keys': Flags.string({
    description: 'Accepted secrets that each process remembers: "server.maxVerifiedKeys" in svc-api.yaml.',
    helpValue: '<number>',
    hidden: true,
  }),
  'metrics-host': Flags.string({
    description: 'Address at which metrics are served: "server.metricsHost" in svc-api.yaml.',
    helpValue: '<address>',
    hidden: true,
  }),
};
