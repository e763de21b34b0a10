import type { AuditReader } from '../audit/audit-entry.ts';
import { isWidened } from '../authorization/granting.ts';
import { type Actor, mayFor, OPERATOR } from '../authorization/principal.ts';
import { KeysError } from '../errors.ts';
import type { ApiKey } from '../key/api-key.ts';
import type { Catalog } from '../permissions/catalog.ts';
import type { KeyFinder } from '../repository.ts';

const BATCH_ENTRIES = 50;

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
  for (const { before, after } of updates) {
    if (!isWidened(before, after, catalog)) continue;
    const namer = await findNamer(context.auditLog, before.id);
    if (namer !== undefined && namer !== callerId) throw await refusal(context, before, 'was given its name by', namer);
  }
}

/** The id of the key that gave a key its name, unless the operator has changed it since, and so knows it. */
async function findNamer(auditLog: AuditReader, id: string): Promise<string | undefined> {
  for (let before: number | undefined; ;) {
    const entries = await auditLog.find({
      changesOf: [id],
      order: 'newest',
      limit: BATCH_ENTRIES,
      ...(before !== undefined && { before }),
    });
    for (const { actor, after } of entries) {
      // What is done by itself, nobody has looked at.
      if (actor.kind === 'POLICY') continue;
      if (actor.kind !== 'KEY') return undefined;
      if (after && 'name' in after) return actor.id ?? undefined;
    }
    if (entries.length < BATCH_ENTRIES) return undefined;
    before = entries.at(-1)!.number;
  }
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
