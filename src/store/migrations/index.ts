import type { Kysely } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { createApiKeys } from './001-api-keys.ts';
import { addExpiry } from './002-expiry.ts';
import { addRotation } from './003-rotation.ts';
import { addManaged } from './004-managed.ts';
import { createUsage } from './005-usage.ts';
import { createAuditLog } from './006-audit-log.ts';
import { createKeyState } from './007-key-state.ts';
import { addAuditRetention } from './008-audit-retention.ts';
import { addNameSkeletons } from './009-name-skeletons.ts';
import { createRotatedSecrets } from './010-rotated-secrets.ts';
import { addStatusToOrder } from './011-order-with-status.ts';
import { createClock } from './012-clock.ts';
import { addChecksums } from './013-checksums.ts';
import { createLastChange } from './014-last-change.ts';
import { createKeyChanges } from './015-key-changes.ts';
import { addSearchIndexes } from './016-search-indexes.ts';
import { clusterUsage } from './017-clustered-usage.ts';
import { createStagedKeys } from './018-staged-keys.ts';
import { addLimits } from './019-limits.ts';
import { createUsageByHour } from './020-usage-by-hour.ts';
import { createConsentRequests } from './021-consent-requests.ts';
import { createApplicationKeys } from './022-application-keys.ts';
import { createSessions } from './023-sessions.ts';
import { createNotices } from './024-notices.ts';
import { addConsentSources } from './025-consent-sources.ts';
import { addFormOutcomes } from './026-form-outcomes.ts';
import { createKeyEffects } from './027-key-effects.ts';

/** Brings a store from one schema to the next. The previous version of the program must still work with the result. */
export type Migration = (db: Kysely<Tables>, dialect: DialectName) => Promise<void>;

/** All migrations, oldest first. One that has been released is never changed. */
export const MIGRATIONS: readonly Migration[] = [
  createApiKeys,
  addExpiry,
  addRotation,
  addManaged,
  createUsage,
  createAuditLog,
  createKeyState,
  addAuditRetention,
  addNameSkeletons,
  createRotatedSecrets,
  addStatusToOrder,
  createClock,
  addChecksums,
  createLastChange,
  createKeyChanges,
  addSearchIndexes,
  clusterUsage,
  createStagedKeys,
  addLimits,
  createUsageByHour,
  createConsentRequests,
  createApplicationKeys,
  createSessions,
  createNotices,
  addConsentSources,
  addFormOutcomes,
  createKeyEffects,
];
