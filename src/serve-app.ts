import type { StartService } from './configured-server.ts';
import { createApp } from './create-app.ts';
import { listen } from './http/server.ts';
import { withoutUndefined } from './keys/options.ts';

/** Serves the app. Throws KeysError SCHEMA_INVALID, GRAPHQL_UNSUPPORTED, LISTEN_FAILED, TLS_INVALID. */
export const serveApp =
  ({ console }: { console: boolean }): StartService =>
  async (opened, options) => {
    const { log } = options;
    const logged = log && { log };
    let app = await createApp({ ...opened, ...logged, console });
    const server = await listen(withoutUndefined({ ...options, app }));
    return {
      server,
      details: { ...(console && options.socket === undefined && { console: `${server.url}/console` }) },
      prepare: async (changed) => {
        const next = await createApp({ ...changed, ...logged, console, replaces: app });
        return () => {
          server.replaceApp(next);
          app = next;
        };
      },
      stop: () => server.stop(),
    };
  };
