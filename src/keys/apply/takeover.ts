import type { AuditEntry, AuditReader } from '../audit/audit-entry.ts';
import { isWidened } from '../authorization/granting.ts';
import { type Actor, mayFor, OPERATOR } from '../authorization/principal.ts';
import { KeysError } from '../errors.ts';
import type { ApiKey } from '../key/api-key.ts';
import type { Catalog } from '../permissions/catalog.ts';
import type { KeyFinder } from '../repository.ts';
import { inTurns } from '../turns.ts';

const BATCH_KEYS = 500;
const BATCH_ENTRIES = 500;

interface Context {
  find: KeyFinder;
  auditLog: AuditReader;
  caller: Actor;
  catalog: Catalog;
}

/**
 * Refuses to take over what another key has prepared. A file grants by name, and whoever has a key of that name gets
 * what the file grants: so it must not be one that another key created, whose secret that one knows; nor may the file
 * widen one that a key, maybe itself, gave that name to.
 * @param found the declared keys that exist
 * @throws KeysError TAKEOVER_REFUSED
 */
export async function refuseTakeover(
  context: Context,
  found: readonly ApiKey[],
  updates: readonly { before: ApiKey; after: ApiKey }[],
): Promise<void> {
  const { caller, catalog } = context;
  const callerId = caller === OPERATOR ? null : caller.apiKey.id;
  const foreign = found.find(({ id, createdBy }) => createdBy !== null && createdBy !== callerId && id !== callerId);
  if (foreign) throw await refusal(context, foreign, 'was created by', foreign.createdBy!);
  const widened: ApiKey[] = [];
  for await (const { before, after } of inTurns(updates)) if (isWidened(before, after, catalog)) widened.push(before);
  const namers = await findNamers(
    context.auditLog,
    widened.map(({ id }) => id),
  );
  for (const key of widened) {
    const namer = namers.get(key.id);
    if (namer !== undefined && namer !== callerId) throw await refusal(context, key, 'was given its name by', namer);
  }
}

/** The ids of the keys that gave keys their names, unless the operator has changed these since, and so knows them. */
async function findNamers(auditLog: AuditReader, ids: readonly string[]): Promise<Map<string, string>> {
  const namers = new Map<string, string>();
  for (let at = 0; at < ids.length; at += BATCH_KEYS) {
    const open = new Set(ids.slice(at, at + BATCH_KEYS));
    for (let before: number | undefined; open.size > 0;) {
      const place = before === undefined ? {} : { before };
      const entries: AuditEntry[] = await auditLog.find({
        changesOf: [...open],
        order: 'newest',
        limit: BATCH_ENTRIES,
        ...place,
      });
      for (const { apiKey, actor, after } of entries) {
        const id = apiKey!.id;
        // What is done by itself, nobody has looked at.
        if (!open.has(id) || actor.kind === 'POLICY') continue;
        const gaveName = actor.kind === 'KEY' && after !== null && 'name' in after;
        if (gaveName && actor.id !== null) namers.set(id, actor.id);
        if (gaveName || actor.kind !== 'KEY') open.delete(id);
      }
      if (entries.length < BATCH_ENTRIES) break;
      before = entries.at(-1)!.number;
    }
  }
  return namers;
}

async function refusal({ find, caller }: Context, { name }: ApiKey, how: string, byId: string): Promise<KeysError> {
  const other = await find.findById(byId);
  const by = other && mayFor(caller, 'READ', other) ? `"${other.name}"` : 'another key';
  const remedy =
    caller === OPERATOR
      ? 'Delete it, or pass --adopt to make it yours with the secret it has.'
      : 'Choose another name.';
  return new KeysError('TAKEOVER_REFUSED', `The API key "${name}" ${how} ${by}. ${remedy}`);
}
