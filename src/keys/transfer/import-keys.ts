import type { AuditDraft, AuditPosition } from '../audit/audit-entry.ts';
import { OPERATOR } from '../authorization/principal.ts';
import type { Transaction } from '../changes/transaction.ts';
import type { Transactions } from '../changes/transactions.ts';
import type { StoredKey } from '../key/api-key.ts';
import { skeletonOf } from '../key/skeleton.ts';
import type { ProgressReport } from '../progress.ts';
import { declarePort } from '../port.ts';
import type { KeyRepository } from '../repository.ts';
import { prefixOf } from '../secret/secret.ts';
import type { ImportRules } from './creators.ts';
import { checkImport, type ImportReport } from './import.ts';
import type { ImportLine } from './read-import.ts';

/** What the audit log says of each key of a batch. */
export type BatchEntry = Pick<AuditDraft, 'at' | 'actor' | 'action'>;

/** Keys that are kept apart, to be inserted together. */
export interface StagedKeys {
  /** A random id. */
  readonly batch: string;
  readonly keys: readonly StoredKey[];
  readonly entry: BatchEntry;
  /** The hashes of their entries, if these follow the one with the hash `previous`. */
  readonly chain: { readonly previous: string; readonly hashes: readonly string[] };
}

/** Keeps keys apart until they are inserted together. */
export interface Staging {
  /** Keeps keys, at least one, each after the key that created it, in pieces between which others can write. */
  stage(keys: readonly StoredKey[], entry: BatchEntry, onProgress?: ProgressReport): Promise<StagedKeys>;
  /** Removes the staged keys of a batch, or all, in pieces as well. */
  clear(batch?: string): Promise<void>;
}
/** The port for it. */
export const STAGING = declarePort<Staging, never>('staging');

/** Inserts staged keys, in a transaction. */
export interface StagedInsertion {
  /**
   * Inserts them, each with its entry in the audit log.
   * @returns false, with nothing done, where they are no longer there: another import has cleared them
   */
  insert(staged: StagedKeys): Promise<boolean>;
}
/** The port for it. */
export const STAGED_KEYS = declarePort<unknown, StagedInsertion>('staged keys');

export interface ImportOptions extends ImportRules {
  repository: KeyRepository;
  transactions: Transactions;
  /** The user of the command line, for the audit log. */
  operator: string;
  /** Is told how many keys are staged. */
  onProgress?: ProgressReport | undefined;
}

/** With more changes meanwhile, everything is checked again. */
const MAX_CHANGES = 1000;

/**
 * Imports the keys of all lines, or none if one of them fails. They are checked and staged while others write; the
 * transaction that makes keys of them only looks at what was changed since.
 */
export async function importKeys(lines: readonly ImportLine[], options: ImportOptions): Promise<ImportReport> {
  const { repository, transactions, operator, now, onProgress } = options;
  const keys = lines.flatMap(({ key }) => key ?? []);
  const entry = { at: now, actor: { kind: 'CLI', id: null, name: operator }, action: 'IMPORT' } as const;
  const staging = repository.port(STAGING);
  let staged: StagedKeys | undefined;
  try {
    for (let isFirst = true; ; isFirst = false) {
      const head = await repository.auditLog.head();
      const report = await checkImport(repository, lines, options);
      if (report.failed > 0 || keys.length === 0) return report;
      // What an import left that was killed. Another that still runs finds out, and stages its keys again.
      if (isFirst) await staging.clear();
      staged ??= await staging.stage(keys, entry, onProgress);
      const values = valuesOf(keys);
      const outcome = await transactions.run(
        OPERATOR,
        (transaction) => insert(transaction, staged!, { head, values }),
        {
          now,
        },
      );
      if (outcome === 'inserted') return imported(report, lines);
      if (outcome === 'changed') continue;
      await staging.clear(staged.batch);
      staged = undefined;
    }
  } finally {
    // What cannot be removed now, the next import removes.
    if (staged) await staging.clear(staged.batch).catch(() => {});
  }
}

async function insert(
  transaction: Transaction,
  staged: StagedKeys,
  { head, values }: { head: AuditPosition | undefined; values: ReadonlySet<string> },
): Promise<'inserted' | 'changed' | 'cleared'> {
  if (await mayConflict(transaction, head?.number ?? 0, values)) return 'changed';
  return (await transaction.port(STAGED_KEYS).insert(staged)) ? 'inserted' : 'cleared';
}

function imported(report: ImportReport, lines: readonly ImportLine[]): ImportReport {
  return {
    ...report,
    imported: lines.length,
    lines: report.lines.map((line, index) => {
      const key = lines[index]!.key!;
      return { ...line, status: 'imported', id: key.id, prefix: prefixOf(key.publicId) };
    }),
  };
}

/** All by which keys depend on others: what is unique, what the name looks like, and the creator. */
function valuesOf(keys: readonly StoredKey[]): Set<string> {
  const values = new Set<string>();
  for (const { id, createdBy, ...key } of keys) {
    values.add(id);
    if (createdBy !== null) values.add(createdBy);
    for (const value of ownValuesOf(key)) values.add(value);
  }
  return values;
}

function ownValuesOf({ name, publicId, digest }: Pick<StoredKey, 'name' | 'publicId' | 'digest'>): string[] {
  return [skeletonOf(name), publicId, digest];
}

/** Whether keys that were changed after an entry of the audit log have, or had, something to do with these values. */
async function mayConflict(
  { auditLog, find }: Transaction,
  after: number,
  values: ReadonlySet<string>,
): Promise<boolean> {
  if (((await auditLog.start())?.number ?? 0) > after) return true;
  const entries = await auditLog.find({ order: 'oldest', after, limit: MAX_CHANGES });
  if (entries.length === MAX_CHANGES) return true;
  const ids = [...new Set(entries.flatMap(({ action, apiKey: key }) => (action !== 'REFUSE' && key ? [key.id] : [])))];
  if (ids.some((id) => values.has(id))) return true;
  const changed = await find.findBy('id', ids);
  // What another key of the same creator does changes how many that has.
  const valuesIn = (key: StoredKey) => [...ownValuesOf(key), key.previousDigest, key.createdBy];
  return changed.some((key) => valuesIn(key).some((value) => values.has(value ?? '')));
}
