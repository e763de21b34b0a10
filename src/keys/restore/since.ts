import type { AuditActor, AuditEntry, AuditReader, AuditValues } from '../audit/audit-entry.ts';
import type { Kept } from './restored-key.ts';

/** When a key changed, and who did it; null where the audit log no longer has it. */
export type Since = { at: number; actor: AuditActor } | null;

/** The fields of the audit log that tell of a loss. */
const FIELDS: Readonly<Record<Kept, readonly string[]>> = {
  enabled: ['disabledAt'],
  secret: ['prefix', 'rotation'],
  grants: ['roles', 'permissions'],
  expiresAt: ['expiresAt'],
  limits: ['limits'],
  allowFrom: ['allowFrom'],
  damaged: [],
};

/** How many of a key's newest entries are looked at. */
const ENTRIES = 200;

/** When a key was deleted, or last lost what it lacks now, and by whom. @throws KeysError STORE_… */
export async function findSince(
  log: Pick<AuditReader, 'find'>,
  id: string,
  lost: 'deleted' | readonly Kept[],
): Promise<Since> {
  const entries = await log.find({ changesOf: [id], order: 'newest', limit: ENTRIES });
  const fields = lost === 'deleted' ? [] : lost.flatMap((aspect) => FIELDS[aspect]);
  const tells = ({ action, after }: AuditEntry) =>
    lost === 'deleted' ? action === 'DELETE' : fields.some((field) => Object.hasOwn(valuesOf(after), field));
  const entry = entries.find(tells);
  return entry ? { at: entry.at, actor: entry.actor } : null;
}

function valuesOf(values: AuditValues | null): AuditValues {
  return values ?? {};
}
