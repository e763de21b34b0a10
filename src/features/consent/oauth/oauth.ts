import type { FeatureContext } from '../../../feature.ts';
import { invalidOption, madeOnce } from '../../../keys/basics/index.ts';
import { type Client, unusableClients } from '../clients.ts';
import { Consent } from '../consent.ts';
import { DEFAULT_REFRESH } from '../refresh.ts';
import { ClientDocuments } from './client-documents.ts';
import { Clients } from './clients.ts';
import type { ConsentParts } from './parts.ts';
import { ownGrantTypes } from './token.ts';

/** The parts of an app, as its configuration and options have them. They are made when they are first needed. */
export const oauthOf = madeOnce(({ keys, config, options, ...context }: FeatureContext): ConsentParts => {
  const { catalog, clock } = keys;
  const allowed = config?.clientDocuments ?? 'off';
  const {
    clients: registered = config?.clients ?? [],
    documents = allowed === 'off' ? undefined : new ClientDocuments({ allowed, clock }),
  } = options as { clients?: readonly Client[]; documents?: ClientDocuments };
  const unusable = unusableClients(registered, catalog.consent);
  if (unusable !== undefined) throw invalidOption('createApp', `${unusable} Pass it to openKeys.`);
  const clients = new Clients(registered, documents, config?.dynamicRegistration ?? false);
  const { issuer, places, addresses, formCheck: check, refusals, failures } = context;
  return {
    consent: keys.feature(Consent),
    catalog,
    clients,
    refresh: config?.refresh ?? DEFAULT_REFRESH,
    issuer,
    places,
    addresses,
    check,
    refusals,
    failures,
    grantTypes: ownGrantTypes({ catalog, clients }),
  };
});
