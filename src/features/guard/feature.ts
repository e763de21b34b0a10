import type { OwnFeature } from '../../feature.ts';
import { errors } from './errors.ts';

declare module '../../config/config.ts' {
  interface Config {
    /** `on` if people sign in to guarded services; undefined if they do only behind `guard`. */
    readonly signIn: 'on' | 'off' | undefined;
  }
}

/** Keys in front of services that know nothing of keys: a reverse proxy, and answers to the questions of other proxies. */
export const guard: OwnFeature = {
  name: 'guard',
  errors,
  needs: ['people', 'routes', 'sessions', 'consent'],
  routes: async (app, context) => (await import('./routes.ts')).addGuard(app, context),
  inPrimary: async () => (await import('./holders-of-workers.ts')).keepHolders(),
  config: {
    defaults: { signIn: undefined },
    sections: { 'sign-in': async () => (await import('./config.ts')).signIn },
  },
};
