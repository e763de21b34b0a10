import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { ServiceApp } from '../../http/app.ts';
import type { RequestWatcher } from '../../http/watched-request.ts';
import { KeysError } from '../../keys/errors.ts';
import { debug } from '../../keys/steps.ts';

type AnsweringApp = Pick<ServiceApp, 'answerFastCgi'>;

/** A FastCGI authorizer that accepts connections. */
export interface RunningAuthorizer {
  readonly port: number;
  /** Answers by another app from the next connection on. */
  replaceApp(app: AnsweringApp): void;
  /** Stops accepting connections, and resolves once those that are open have ended, after a second at most. */
  stop(): Promise<void>;
}

/** How long a web server may send nothing and read nothing on a connection, in milliseconds. */
const IDLE_MS = 10_000;
const STOP_GRACE_MS = 1000;
/** More than a web server has requests at a time: it opens a connection for each. */
const MAX_CONNECTIONS = 4096;

/**
 * Starts a FastCGI authorizer, as `mod_authnz_fcgi` of Apache asks one: by the same rules as `/auth/…`.
 * @throws KeysError LISTEN_FAILED if the address is not available
 */
export async function listenFastCgi({
  app,
  host,
  port,
  idleMs = IDLE_MS,
  watchers,
}: {
  app: AnsweringApp;
  host: string;
  port: number;
  /** How long a web server may send nothing and read nothing, in milliseconds. Default: 10,000. */
  idleMs?: number;
  /** Are told of each request. */
  watchers?: readonly RequestWatcher[] | undefined;
}): Promise<RunningAuthorizer> {
  const open = new Set<Socket>();
  let answering = app;
  const server = createServer({ noDelay: true }, (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    socket.on('error', () => {});
    socket.setTimeout(idleMs, () => socket.destroy());
    answering.answerFastCgi(socket, watchers);
  });
  server.maxConnections = MAX_CONNECTIONS;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(listenError(error, { host, port })));
    server.listen(port, host, resolve);
  });
  debug('a listener was opened', () => ({ address: server.address(), protocol: 'FastCGI' }));
  return {
    port: (server.address() as AddressInfo).port,
    replaceApp: (next) => void (answering = next),
    async stop() {
      const deadline = setTimeout(() => {
        for (const socket of open) socket.destroy();
      }, STOP_GRACE_MS);
      await new Promise((resolve) => {
        server.close(resolve);
      });
      clearTimeout(deadline);
    },
  };
}

function listenError(error: NodeJS.ErrnoException, { host, port }: { host: string; port: number }): KeysError {
  const reasons: Record<string, string> = {
    EADDRINUSE: `port ${port} is taken`,
    EACCES: `this user may not listen on port ${port}`,
  };
  const reason = reasons[error.code ?? ''] ?? `${error.code} on "${host}"`;
  const message = `The server cannot answer by FastCGI: ${reason}. Choose another port with --fastcgi-port.`;
  return new KeysError('LISTEN_FAILED', message, { cause: error });
}
