import { BearerCheck } from '../../http/bearer-check.ts';
import type { BearerAuthOptions, CheckParts } from '../../http/bearer-options.ts';
import { ClientAddresses } from '../../http/client-address.ts';
import type { CredentialPlace } from '../../keys/credential-places.ts';
import type { Networks } from '../../keys/networks.ts';
import type { Catalog } from '../../keys/permissions/catalog.ts';
import type { KeysService } from '../../keys/service.ts';
import { Access } from './access.ts';
import { credentialHeaders, type IsCredential } from './credential-headers.ts';
import type { Requirements } from './requirement.ts';

/** Who may pass. This may change while the guard runs. */
export interface GuardRules {
  readonly keys: Pick<KeysService, 'catalog' | 'checkStore'> & BearerAuthOptions['keys'];
  /** Who may make which requests. */
  readonly requirements: Requirements;
  /** Where a key may stand in a request. */
  readonly credentials: readonly CredentialPlace[];
  /** Whose forwarded headers are believed. */
  readonly trust: Networks;
  /** See `BearerAuthOptions`. */
  readonly failedCredentials?: string | false;
}

/** The rules, as they are applied. */
export interface AppliedRules {
  readonly access: Access;
  readonly catalog: Catalog;
  readonly isCredential: IsCredential;
  readonly trust: Networks;
  readonly clients: ClientAddresses;
  /** Resolves when the store answers. */
  check(): Promise<void>;
}

/** @param passCredential whether the upstream gets the key, too */
export function applyRules(
  { keys, requirements, credentials, trust }: GuardRules,
  parts: CheckParts,
  passCredential: boolean,
): AppliedRules {
  const check = new BearerCheck({ keys, credentials, trust: trust.texts }, parts);
  return {
    access: new Access({ check, requirements, refusals: parts.refusals }),
    catalog: keys.catalog,
    isCredential: passCredential ? () => false : credentialHeaders(credentials),
    trust,
    clients: new ClientAddresses(trust.texts),
    check: () => keys.checkStore(),
  };
}
