import type { Kysely } from 'kysely';
import type { Tables } from '../tables.ts';
import { createApiKeys } from './001-api-keys.ts';
import { addExpiry } from './002-expiry.ts';
import { addRotation } from './003-rotation.ts';
import { addManaged } from './004-managed.ts';
import { createUsage } from './005-usage.ts';
import { createAuditLog } from './006-audit-log.ts';

/** All migrations, oldest first. One that has been released is never changed. */
export const MIGRATIONS: readonly ((db: Kysely<Tables>) => Promise<void>)[] = [
  createApiKeys,
  addExpiry,
  addRotation,
  addManaged,
  createUsage,
  createAuditLog,
];
