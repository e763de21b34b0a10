import type { OwnFeature } from '../../feature.ts';
import { CONSENTS } from './consent-request.ts';
import { consentOperations } from './operations.ts';
import type { Client } from './clients.ts';
import { DEFAULT_REFRESH, type RefreshSettings } from './refresh.ts';
import { errors } from './errors.ts';
import { CONSENT_RULE, type ConsentMode } from './modes.ts';
import { consentFlows } from './consent-flow.ts';

declare module '../../config/config.ts' {
  interface Config {
    /** How applications can request keys; undefined allows only `svc-api login`, by code. */
    readonly consent: ConsentMode | undefined;
    /** Applications that can ask for keys. */
    readonly clients: readonly Client[];
    /** The hosts at which applications can describe themselves, at the URLs that are their ids. */
    readonly clientDocuments: 'any' | 'off' | readonly string[];
    /** True if applications can register themselves. */
    readonly dynamicRegistration: boolean;
    /** Settings for refreshing the keys of applications. */
    readonly refresh: RefreshSettings;
  }
}

declare module '../../keys/permissions/catalog.ts' {
  interface Catalog {
    /** How applications can ask for keys; undefined if not configured. */
    readonly consent?: ConsentMode | undefined;
  }
  interface CatalogAdditions {
    /**
     * How applications can ask for keys: `off`, `device` (by a code that they show), `code` (by a page that they open)
     * or `both`. Default: only `svc-api login` can, by a code.
     */
    consent?: ConsentMode | undefined;
  }
}

declare module '../../service/create-app.ts' {
  interface CreateAppOptions {
    /**
     * Applications that can request keys, besides the program itself, in the way set as `consent` in `openKeys`.
     * Default: none.
     */
    clients?: readonly Client[];
  }
}

/** Lets applications get keys that people approve. A key that replaces itself still belongs to its application. */
export const consent: OwnFeature = {
  name: 'consent',
  errors,
  ...consentOperations,
  schema: () => import('./schema.ts'),
  config: {
    defaults: {
      consent: undefined,
      clients: [],
      clientDocuments: 'off',
      dynamicRegistration: false,
      refresh: DEFAULT_REFRESH,
    },
    additions: { consent: CONSENT_RULE },
    sections: {
      consent: async () => (await import('./config.ts')).consent,
      clients: async () => (await import('./config.ts')).clients,
    },
  },
  async routes(app, context) {
    const [{ addOAuth }, { oauthOf }] = await Promise.all([import('./oauth/add-oauth.ts'), import('./oauth/oauth.ts')]);
    context.places.tellsClients = consentFlows(context.keys.catalog).includes('CODE');
    addOAuth(app, context.allowOrigins, oauthOf(context));
  },
  provides: { appOptions: async () => (await import('./app-options.ts')).appOptions },
  store: async () => (await import('./store.ts')).consentStore,
  onKeys: {
    async restoring(backup, ids) {
      const given = await backup.port(CONSENTS).givenTo(ids);
      return async (transaction, changes) => {
        const consents = transaction.port(CONSENTS);
        for (const { before, after } of changes) {
          const kept = before ? undefined : given.get(after.id);
          if (kept) await consents.rememberClient(after.id, kept);
        }
      };
    },
    async replacing(transaction, { apiKey: key, replaced, takesOwnPlace }) {
      const given = await transaction.port(CONSENTS).givenTo(replaced.map(({ id }) => id));
      const own = replaced[0].id;
      return {
        async replaced(here) {
          if (!takesOwnPlace) return;
          const consents = here.port(CONSENTS);
          const client = given.get(own);
          if (client) await consents.rememberClient(key.id, { clientId: client.clientId });
          await consents.replaceGivenKey(own, key.id);
        },
        async reverted(here) {
          const consents = here.port(CONSENTS);
          for (const [id, client] of given) await consents.rememberClient(id, client);
          if (takesOwnPlace) await consents.replaceGivenKey(key.id, own);
        },
      };
    },
  },
};
