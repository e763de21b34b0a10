/** An environment variable that changes the behaviour of the program. */
export interface Variable {
  name: string;
  meaning: string;
  /** The behaviour without it. */
  otherwise?: string;
}

/** All of them, the most important ones first. */
export const ENVIRONMENT: readonly Variable[] = [
  {
    name: 'SVC_API_DATABASE',
    meaning: 'Path or `postgres://` URL of the key store; `--database` overrides it.',
    otherwise: '`svc-api/keys.sqlite` in the folder of `XDG_DATA_HOME`',
  },
  {
    name: 'SVC_API_STORE_MODE',
    meaning: 'With `shared`, a store is accepted that other users of the machine can write. They can then create keys.',
    otherwise: '`private`: such a store is refused',
  },
  {
    name: 'SVC_API_SERVER',
    meaning: 'Address of a running server to work on instead of a key store; `--server` overrides it.',
    otherwise: 'commands work on a key store',
  },
  {
    name: 'SVC_API_KEY',
    meaning: 'The key that commands send to a running server.',
    otherwise: 'the stored key for the server',
  },
  {
    name: 'SVC_API_CONFIG',
    meaning: 'Path of the configuration; `--config` overrides it.',
    otherwise: '`svc-api/svc-api.yaml` in the folder of `XDG_CONFIG_HOME`',
  },
  {
    name: 'SVC_API_HOST',
    meaning: 'Address that `serve` and `guard` listen on; `--host` overrides it.',
    otherwise: '127.0.0.1',
  },
  {
    name: 'SVC_API_PORT',
    meaning: 'Port that `serve` and `guard` listen on; `--port` overrides it.',
    otherwise: '4000; 8080 for `guard`',
  },
  {
    name: 'SVC_API_SOCKET',
    meaning:
      'Unix socket that `serve` and `guard` listen on instead of an address and a port; `--socket` overrides it.',
  },
  {
    name: 'SVC_API_TLS_CERT',
    meaning: 'Path of the certificate of `serve` and `guard`; `--tls-cert` overrides it.',
    otherwise: 'plain HTTP',
  },
  {
    name: 'SVC_API_TLS_KEY',
    meaning: 'Path of the private key of the certificate of `serve` and `guard`; `--tls-key` overrides it.',
  },
  {
    name: 'SVC_API_ACCEPT_CLOCK',
    meaning:
      "`1`: `serve` and `guard` start even if the machine's clock is behind the audit log, as with `--accept-clock`.",
    otherwise: 'they do not start',
  },
  {
    name: 'SVC_API_KEEP_ALIVE',
    meaning: 'Seconds for which `serve` and `guard` keep idle connections; `--keep-alive` overrides it.',
    otherwise: '75',
  },
  {
    name: 'SVC_API_REQUEST_LOG',
    meaning: '1 makes `serve` and `guard` log one line for each request, like `--request-log`.',
    otherwise: 'off',
  },
  {
    name: 'SVC_API_METRICS_PORT',
    meaning: 'Port at which `serve` and `guard` serve metrics for Prometheus; `--metrics-port` overrides it.',
    otherwise: 'no metrics',
  },
  {
    name: 'SVC_API_METRICS_HOST',
    meaning: 'Address at which `serve` and `guard` serve metrics; `--metrics-host` overrides it.',
    otherwise: '127.0.0.1',
  },
  {
    name: 'OTEL_…',
    meaning:
      'Settings of OpenTelemetry for traces: with OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, ' +
      '`serve` and `guard` send a span for each request there.',
    otherwise: 'no traces',
  },
  {
    name: 'SVC_API_AUDIT_KEY',
    meaning: 'Path of a file with 32 bytes: the key for chaining the audit log.',
    otherwise: 'the log is chained without a key',
  },
  {
    name: 'SVC_API_NOTICES_SECRET',
    meaning: 'The secret that signs notices to a webhook: whsec_ and base64. Separate several secrets by white space.',
    otherwise: 'the file in `secretFile` of the configuration',
  },
  {
    name: 'LOG_LEVEL',
    meaning: 'Level of the log on stderr, in JSON lines: trace, debug, info, warn, error, fatal or silent.',
    otherwise: 'warn; info for `serve` and `guard`',
  },
  {
    name: 'NO_COLOR',
    meaning: 'If it is not empty, output has no colours.',
    otherwise: 'only output to a terminal has them',
  },
  { name: 'FORCE_COLOR', meaning: '0 for no colours; 1 for colours even if the output is not a terminal.' },
  {
    name: 'SVC_API_PROMPTS',
    meaning: 'The style of questions: plain, as lines with numbered choices, or rich, as lists that are redrawn.',
    otherwise: 'rich; plain if TERM is dumb',
  },
  { name: 'TERM', meaning: 'If it is dumb, questions and progress are printed as lines, and nothing is redrawn.' },
  {
    name: 'OCLIF_COLUMNS',
    meaning: 'Width of the help.',
    otherwise: 'COLUMNS, or the width of the terminal; 80 if the output is not a terminal',
  },
  {
    name: 'COLUMNS',
    meaning: 'Width of the help and of output to a terminal.',
    otherwise: 'the width of the terminal',
  },
  {
    name: 'LISTEN_FDS, LISTEN_PID',
    meaning: 'Set by systemd, if it passes a socket for `serve` or `guard` to listen on.',
  },
  {
    name: 'NOTIFY_SOCKET, WATCHDOG_PID, WATCHDOG_USEC',
    meaning: 'Set by systemd, so that `serve` and `guard` notify it of their state.',
  },
  {
    name: 'SVC_API_ID_TOKEN',
    meaning: 'The token that `exec --federated` exchanges for a key, set by GitLab.',
    otherwise: 'the token of GitHub, Forgejo, Buildkite or a projected volume',
  },
  {
    name: 'ACTIONS_ID_TOKEN_REQUEST_URL',
    meaning:
      'Set by GitHub and Forgejo, with ACTIONS_ID_TOKEN_REQUEST_TOKEN: the address from which `exec --federated` gets a token.',
  },
  { name: 'BUILDKITE', meaning: 'Set by Buildkite: `exec --federated` then gets a token from its agent.' },
  {
    name: 'API_KEY',
    meaning: 'Set by `exec` for its command, to the secret of the temporary key; `--env` names another variable.',
  },
  {
    name: 'PG…',
    meaning:
      'Defaults for the `postgres://` URL of a key store, as for psql: PGHOST, PGPORT, PGUSER, PGPASSWORD, ' +
      'PGPASSFILE, PGDATABASE, PGOPTIONS, PGAPPNAME and PGCONNECT_TIMEOUT. Without a user, USER or USERNAME names it.',
  },
  {
    name: 'PGSSL…',
    meaning:
      'Defaults for TLS in the `postgres://` URL of a key store: ' +
      'PGSSLMODE, PGSSLROOTCERT, PGSSLCERT, PGSSLKEY, PGSSLPASSWORD and PGCHANNELBINDING.',
  },
  {
    name: 'NODE_USE_ENV_PROXY',
    meaning:
      'With 1, or with --use-env-proxy in NODE_OPTIONS, Node sends requests through the proxy in HTTPS_PROXY or ' +
      'HTTP_PROXY, unless NO_PROXY names the host.',
  },
  { name: 'XDG_CONFIG_HOME', meaning: "Folder of the user's configuration.", otherwise: '`~/.config`' },
  { name: 'XDG_DATA_HOME', meaning: "Folder of the user's data.", otherwise: '`~/.local/share`' },
  {
    name: 'XDG_CACHE_HOME',
    meaning: 'Folder of caches, such as compiled code.',
    otherwise: '`~/.cache`',
  },
  {
    name: 'NODE_COMPILE_CACHE',
    meaning: 'Folder for cached compiled code, which makes the program start faster.',
    otherwise: '`svc-api/compile-cache` in the folder of `XDG_CACHE_HOME`',
  },
  { name: 'HOME', meaning: 'Home folder of the user, written as ~ here.' },
  { name: 'SHELL', meaning: "The user's shell, for `autocomplete` without an argument." },
  {
    name: 'COMP_…',
    meaning: 'Set by completion scripts: COMP_LINE, COMP_WORDBREAKS and COMP_BUFFER.',
  },
  { name: 'NODE_DISABLE_COMPILE_CACHE', meaning: 'If it is not empty, compiled code is not cached.' },
];
