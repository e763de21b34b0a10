import { Declarations } from './apply/declarations.ts';
import { AuditAccess } from './authorization/audit-access.ts';
import { Containments } from './changes/contain.ts';
import { PermittedChanges } from './changes/permitted-changes.ts';
import { Leaks } from './changes/note-leak.ts';
import { Consent, type ConsentOptions } from './consent/consent.ts';
import { type HealthOptions, StoreHealth } from './health.ts';
import { Usage } from './key/usage.ts';
import { methodsOf } from './port.ts';
import { Sessions } from './sessions.ts';
import { Transfer } from './transfer/transfer.ts';
import { UnusedKeys } from './unused-keys.ts';

/** What features are built from. */
export type FeatureParts = ConsentOptions & HealthOptions;

/** What can be done beside reading and changing keys one by one. */
export interface Features
  extends AuditAccess, Containments, Declarations, PermittedChanges, Leaks, StoreHealth, Transfer, UnusedKeys, Usage {
  /** How applications get keys that people agree to. */
  readonly consent: Consent;
  /** The sessions of people who have signed in with keys. */
  readonly sessions: Sessions;
}

/** Builds all features: this is the one place that knows them. */
export function featuresOf(parts: FeatureParts): Features {
  return Object.assign(
    { consent: new Consent(parts), sessions: new Sessions(parts) },
    methodsOf(
      new AuditAccess(parts),
      new Containments(parts),
      new Declarations(parts),
      new PermittedChanges(parts),
      new Leaks(parts),
      new StoreHealth(parts),
      new Transfer(parts),
      new UnusedKeys(parts),
      new Usage(parts),
    ),
  );
}
