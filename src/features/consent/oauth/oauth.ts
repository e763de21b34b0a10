import type { FeatureContext } from '../../../feature.ts';
import { invalidOption, madeOnce } from '../../../keys/basics/index.ts';
import { type Client, unusableClients } from '../clients.ts';
import { Consent } from '../consent.ts';
import { DEFAULT_REFRESH } from '../refresh.ts';
import { ClientDocuments } from './client-documents.ts';
import { Clients } from './clients.ts';
import type { ConsentParts } from './parts.ts';
import { ownGrantTypes } from './token.ts';

/** The parts of an app, as its configuration and options have them. */
class OAuth implements ConsentParts {
  readonly consent: ConsentParts['consent'];
  readonly catalog: ConsentParts['catalog'];
  readonly clients: ConsentParts['clients'];
  readonly refresh: ConsentParts['refresh'];
  readonly issuer: ConsentParts['issuer'];
  readonly places: ConsentParts['places'];
  readonly addresses: ConsentParts['addresses'];
  readonly check: ConsentParts['check'];
  readonly refusals: ConsentParts['refusals'];
  readonly failures: ConsentParts['failures'];
  readonly grantTypes: ConsentParts['grantTypes'];

  constructor({ keys, config, options, ...context }: FeatureContext) {
    const allowed = config?.clientDocuments ?? 'off';
    const {
      clients = config?.clients ?? [],
      documents = allowed === 'off' ? undefined : new ClientDocuments({ allowed, clock: keys.clock }),
    } = options as { clients?: readonly Client[]; documents?: ClientDocuments };
    const unusable = unusableClients(clients, keys.catalog.consent);
    if (unusable !== undefined) throw invalidOption('createApp', `${unusable} Pass it to openKeys.`);
    this.consent = keys.feature(Consent);
    this.catalog = keys.catalog;
    this.clients = new Clients(clients, documents, config?.dynamicRegistration ?? false);
    this.refresh = config?.refresh ?? DEFAULT_REFRESH;
    this.issuer = context.issuer;
    this.places = context.places;
    this.addresses = context.addresses;
    this.check = context.formCheck;
    this.refusals = context.refusals;
    this.failures = context.failures;
    this.grantTypes = ownGrantTypes(this);
  }
}

/** The parts of an app. They are made when they are first needed. */
export const oauthOf = madeOnce((context: FeatureContext): ConsentParts => new OAuth(context));
