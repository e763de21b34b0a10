import type { Contained } from '../keys/administration.ts';
import { type DeclaredKey, type PlannedChanges, plannedCreation } from '../keys/apply/declaration.ts';
import type { AuditEntry, AuditValues } from '../keys/audit/audit-entry.ts';
import type { FieldChange, FieldValue, PlannedChange } from '../keys/key/field-changes.ts';
import type { Data } from './connection.ts';
import { readIssue, readName, timeIn } from './read-key.ts';

/** Reads what an apply changes. @param ids of the keys that were created, in the order of their declarations */
export function readPlanned(
  { changes, unchanged }: Data,
  declared: readonly DeclaredKey[],
  ids: readonly string[],
): PlannedChanges {
  let created = 0;
  const read = changes.map(({ action, name, keyId, changes: fields }: Data): PlannedChange => {
    if (action === 'CREATE') {
      const key = declared.find((each) => each.name === name);
      if (!key) throw new TypeError('a key that is not declared');
      return plannedCreation(key, ids[created++]);
    }
    if (action === 'DELETE') return { action, name, id: keyId };
    return { action: 'UPDATE', name, id: keyId, changes: fieldsIn(fields) };
  });
  if (!Number.isInteger(unchanged)) throw new TypeError('not a number');
  return { changes: read, unchanged, confusable: [] };
}

/** The log has when a key was disabled; commands show whether it is enabled, before who created it. */
function fieldsIn(fields: Data): FieldChange[] {
  const read: FieldChange[] = fields.map(({ field, before, after }: Data) => {
    const [old, fresh] = [JSON.parse(before), JSON.parse(after)] as [FieldValue, FieldValue];
    if (field !== 'disabledAt') return { field, before: old, after: fresh };
    return { field: 'enabled', before: old === null, after: fresh === null };
  });
  const isLast = ({ field }: FieldChange) => Number(field === 'createdBy');
  return read.toSorted((one, other) => isLast(one) - isLast(other));
}

/** Reads what containing a key does. */
export function readContained({ keyId, name, exists, issued, changes, requests }: Data): Contained {
  return {
    apiKey: readName({ id: keyId, name }),
    exists: exists === true,
    issued: issued.map(readIssue),
    changes: changes.map(({ name: changed, keyId: id, changes: fields }: Data): PlannedChange => {
      return { action: 'UPDATE', name: changed, id, changes: fieldsIn(fields) };
    }),
    requests: requests.map(({ requestId: id, clientName: client, keyName }: Data) => ({ id, client, keyName })),
  };
}

/** Reads an entry of the audit log. */
export function readEntry(data: Data): AuditEntry {
  const { number, actor, action, keyId, keyName, changes, address, hash } = data;
  if (!Number.isInteger(number)) throw new TypeError('not a number');
  const { kind, keyId: id, name } = actor;
  return {
    number,
    at: timeIn(data.at)!,
    actor: { kind, id, name },
    action,
    apiKey: keyId === null ? null : { id: keyId, name: keyName },
    before: valuesIn(changes, 'before'),
    after: valuesIn(changes, 'after'),
    ...(address !== null && { address }),
    hash,
  };
}

/** One side of all changed fields; null if there was no key then. */
function valuesIn(changes: Data[], side: 'before' | 'after'): AuditValues | null {
  if (changes.every((change) => change[side] === null)) return null;
  return Object.fromEntries(changes.map((change) => [change.field, JSON.parse(change[side]) as unknown]));
}
