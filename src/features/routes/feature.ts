import type { OwnFeature } from '../../feature.ts';
import { routeOperations } from './operations.ts';
import type { Route } from './router.ts';
import type { Upstream } from './upstream.ts';

declare module '../../config/config.ts' {
  interface Config {
    /** The services that `guard` passes requests on to, each with a name. */
    readonly upstreams: readonly Upstream[];
    readonly routes: readonly Route[];
    /** The expectations of the routes, which hold. */
    readonly expect: readonly string[];
  }
}

/** Routes that say which permissions the requests to guarded services need. */
export const routes: OwnFeature = {
  name: 'routes',
  operations: routeOperations,
  schema: () => import('./schema.ts'),
  checks: [{ name: 'CONFIG', run: async (context) => (await import('./checks.ts')).checkObserving(context) }],
  config: {
    defaults: { upstreams: [], routes: [], expect: [] },
    sections: {
      upstreams: async () => (await import('./config/upstreams.ts')).upstreams,
      routes: async () => (await import('./config/routes.ts')).routes,
      expect: async () => (await import('./config/routes.ts')).expect,
    },
  },
};
