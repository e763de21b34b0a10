import type { OwnFeature } from '../../feature.ts';
import type { FederationRule } from './federation-rule.ts';

declare module '../../config/config.ts' {
  interface Config {
    /** Rules that exchange tokens of issuers for keys. */
    readonly federation: readonly FederationRule[];
  }
}

/** Keys for other keys, and for tokens of trusted issuers. */
export const federation: OwnFeature = {
  name: 'federation',
  needs: ['consent', 'people', 'unused-keys'],
  routes: async (_, context) => (await import('./routes.ts')).addExchange(context),
  checks: [{ name: 'FEDERATION', run: async (context) => (await import('./checks.ts')).checkFederation(context) }],
  config: {
    defaults: { federation: [] },
    sections: { federation: async () => (await import('./config.ts')).federation },
  },
};
