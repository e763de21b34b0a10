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
  commands: {
    'apikey:explain': {
      form: {
        syntax: 'METHOD URL',
        args: ['method of a request', 'URL of the request'],
        description:
          'Shows which route of svc-api.yaml decides about the request, and why. Without --key and --permissions, ' +
          'the ' +
          'request has no key. Nothing is sent. Does not check rate limits, or the networks that a key can be used ' +
          'from. Exits with 0 even if the request would be refused.',
        examples: [
          ['Show what a request requires', 'GET https://grafana.example.org/api/dashboards/7'],
          ['Show what a key lacks for a request', 'POST https://grafana.example.org/api/users --key "CI deploy"'],
          [
            'Try permissions before a key has them',
            'GET https://grafana.example.org/\n--permissions GRAFANA:READ_ANY --json',
          ],
        ],
        takes: ([, url, ...others]) => others.length === 0 && url !== undefined && url.includes('/'),
      },
      flags: {
        key: { description: 'Name of the key that the request has.', value: '<name>' },
        permissions: {
          description: 'Permissions of the key that the request has, instead of --key, comma-separated.',
          value: '<resource:action,…>',
          isList: true,
        },
        preflight: { description: 'Explain the CORS preflight that a browser sends before the request.' },
      },
      run: async (command) => (await import('./cli/explain.ts')).runExplain(command),
    },
  },
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
