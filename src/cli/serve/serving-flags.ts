import * as Flags from '@oclif/core/flags';

/** The flags of what serves: where, by which certificate, in how many processes, and what each of them takes. */
export function servingFlags(port: number) {
  return {
    host: Flags.string({
      description:
        'Address to listen on, such as ::1; :: is all of this machine, IPv4 too. Default: SVC_API_HOST, or 127.0.0.1.',
      helpValue: '<address>',
    }),
    port: Flags.string({
      description: `Port to listen on; 0 picks a free one. Default: SVC_API_PORT, or ${port}.`,
      helpValue: '<port>',
    }),
    socket: Flags.string({
      description:
        'Unix socket to listen on, in place of an address and a port; its mode is 0660. Default: SVC_API_SOCKET.',
      helpValue: '<path>',
    }),
    'tls-cert': Flags.string({
      description:
        'Certificate in PEM, with those that signed it, to serve by TLS. Taken anew when it changes. ' +
        'Default: SVC_API_TLS_CERT, or plain HTTP.',
      helpValue: '<path>',
    }),
    'tls-key': Flags.string({
      description: 'Private key of the certificate, in PEM, that other users cannot read. Default: SVC_API_TLS_KEY.',
      helpValue: '<path>',
    }),
    'keep-alive': Flags.string({
      description:
        'How long connections are kept for a further request; longer than a proxy keeps them. ' +
        'Default: SVC_API_KEEP_ALIVE, or 75.',
      helpValue: '<seconds>',
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
    'request-log': Flags.boolean({
      description: 'Log one line for each request. Default: SVC_API_REQUEST_LOG, or off.',
    }),
    'metrics-port': Flags.string({
      description:
        'Port at which Prometheus scrapes /metrics; 0 picks a free one. Default: SVC_API_METRICS_PORT, or none.',
      helpValue: '<port>',
    }),
    'metrics-host': Flags.string({
      description:
        'Address for that port. Nobody is asked for a key there. Default: SVC_API_METRICS_HOST, or 127.0.0.1.',
      helpValue: '<address>',
    }),
  };
}
