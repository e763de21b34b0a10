import type { AuditEntry, AuditValues } from '../audit/audit-entry.ts';
import type { KeyFinder } from '../repository.ts';
import { type Actor, mayFor, OPERATOR, uses } from './principal.ts';

/**
 * Whose entries of the audit log an actor may read: undefined for all, the id of a key for those about or by that key
 * and the keys that it created, null for none but those that concern no key.
 */
export function auditOwner(actor: Actor): string | null | undefined {
  if (actor === OPERATOR || uses(actor, 'API_KEY', 'READ_ANY')) return undefined;
  return uses(actor, 'API_KEY', 'READ_OWN') ? actor.apiKey.id : null;
}

/**
 * Entries without what names keys that a reader may not read: as the key concerned, as the actor, or as a creator.
 * Users of the command line are named to readers of all keys only.
 * @throws KeysError STORE_…
 */
export async function redactEntries(
  entries: readonly AuditEntry[],
  reader: Actor,
  find: Pick<KeyFinder, 'findBy'>,
): Promise<AuditEntry[]> {
  const keys = await find.findBy('id', [...new Set(entries.flatMap(namedIn))]);
  const readable: ReadonlySet<unknown> = new Set(keys.filter((key) => mayFor(reader, 'READ', key)).map(({ id }) => id));
  const withoutCreator = (values: AuditValues | null) =>
    typeof values?.['createdBy'] === 'string' && !readable.has(values['createdBy'])
      ? { ...values, createdBy: null }
      : values;
  return entries.map((entry) => {
    const { actor, apiKey: key, before, after } = entry;
    const isNamed = actor.kind === 'REQUEST' || actor.kind === 'POLICY' || readable.has(actor.id);
    const redacted = { ...entry, actor: isNamed ? actor : { ...actor, id: null, name: null } };
    if (key && !readable.has(key.id)) return { ...redacted, apiKey: null, before: null, after: null };
    return { ...redacted, before: withoutCreator(before), after: withoutCreator(after) };
  });
}

/** The ids of all keys that an entry names. */
function namedIn({ actor, apiKey: key, before, after }: AuditEntry): string[] {
  return [actor.id, key?.id, before?.['createdBy'], after?.['createdBy']].filter((id) => typeof id === 'string');
}
