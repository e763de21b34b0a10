import type { StartService } from './configured-server.ts';
import { createApp } from './create-app.ts';
import type { RunningAuthorizer } from './guard/fastcgi/listen.ts';
import type { ServiceApp } from './http/app.ts';
import type { ServerOptions } from './http/serve-requests.ts';
import { listen } from './http/server.ts';
import { withoutUndefined } from './keys/options.ts';

/** What is served beside the app. */
export interface ServeOptions {
  /** Where web servers ask by FastCGI: 0 picks a port. Default: nowhere. */
  fastCgiPort: number | undefined;
  /** Whether there is the console. */
  console: boolean;
}

/**
 * Serves the app, and answers by FastCGI as well if there is a port for that; 0 picks one.
 * Throws KeysError SCHEMA_INVALID, GRAPHQL_UNSUPPORTED, LISTEN_FAILED, TLS_INVALID.
 */
export const serveApp =
  ({ fastCgiPort, console }: ServeOptions): StartService =>
  async (opened, options) => {
    const { log } = options;
    const logged = log && { log };
    let app = await createApp({ ...opened, ...logged, console });
    const server = await listen(withoutUndefined({ ...options, app }));
    const authorizer = await answerByFastCgi(app, options, fastCgiPort).catch(async (error: unknown) => {
      await server.stop(0);
      throw error;
    });
    return {
      server,
      details: {
        ...(console && options.socket === undefined && { console: `${server.url}/console` }),
        ...(authorizer && { fastCgiPort: authorizer.port }),
      },
      prepare: async (changed) => {
        const next = await createApp({ ...changed, ...logged, console, replaces: app });
        return () => {
          server.replaceApp(next);
          authorizer?.replaceApp(next);
          app = next;
        };
      },
      stop: async () => {
        await Promise.all([server.stop(), authorizer?.stop()]);
      },
    };
  };

async function answerByFastCgi(
  app: ServiceApp,
  { host = '127.0.0.1', watchers }: Pick<ServerOptions, 'host' | 'watchers'>,
  port?: number,
): Promise<RunningAuthorizer | undefined> {
  if (port === undefined) return undefined;
  const { listenFastCgi } = await import('./guard/fastcgi/listen.ts');
  return listenFastCgi({ app, host, port, watchers });
}
