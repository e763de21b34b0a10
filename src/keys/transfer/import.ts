import type { AuditDraft, AuditPosition } from '../audit/audit-entry.ts';
import { MAX_CHAIN_LENGTH } from '../authorization/chain.ts';
import { tooMany } from '../authorization/policy.ts';
import { OPERATOR } from '../authorization/principal.ts';
import { findConfusableNames, warningsOf } from '../changes/confusable-names.ts';
import type { Transaction } from '../changes/transaction.ts';
import type { Transactions } from '../changes/transactions.ts';
import { type ErrorCode, NameTakenError } from '../errors.ts';
import type { ApiKey, StoredKey } from '../key/api-key.ts';
import { computeSkeleton } from '../key/skeleton.ts';
import { statusOf } from '../key/status.ts';
import type { Catalog } from '../permissions/catalog.ts';
import type { ProgressReport } from '../progress.ts';
import { declarePort } from '../port.ts';
import type { KeyFinder, KeyRepository } from '../repository.ts';
import { prefixOf } from '../secret/secret.ts';
import type { ImportLine, ImportProblem, ImportWarning } from './read-import.ts';

/** The outcome for one line. */
export interface LineReport {
  /** Its number, counted from 1. */
  line: number;
  /** `not imported`: the line itself is valid, but another one failed, or it was a dry run. */
  status: 'imported' | 'failed' | 'not imported';
  /** The name of the key; null if it is invalid. */
  name: string | null;
  /** The id of the imported key. */
  id: string | null;
  /** The prefix of the imported key. */
  prefix: string | null;
  /** Why the line failed. */
  errors: readonly ImportProblem[];
  /** What is worth knowing about the key. */
  warnings: readonly ImportWarning[];
}

/** The outcome of an import: all keys were imported, or none. */
export interface ImportReport {
  /** The number of keys that were imported. */
  imported: number;
  /** The number of lines that failed. */
  failed: number;
  /** One entry per line, without the empty ones. */
  lines: LineReport[];
}

/** A value that must be unique, and the key that has it. */
type Holder = readonly [value: string | null, key: ApiKey];

/** Values that must be unique, and the messages for those that are not. */
const UNIQUE: readonly {
  code: ErrorCode;
  valueOf: (key: StoredKey) => string;
  findHolders: (find: KeyFinder, values: readonly string[]) => Promise<Holder[]>;
  inStore: (key: StoredKey, holder: ApiKey) => string;
  inFile: (line: number) => string;
}[] = [
  {
    code: 'NAME_TAKEN',
    valueOf: ({ name }) => name,
    findHolders: findHoldersBy('name'),
    inStore: ({ name }) => new NameTakenError(name, false).message,
    inFile: (line) => `Line ${line} has the same name.`,
  },
  {
    code: 'SECRET_TAKEN',
    valueOf: ({ digest }) => digest,
    findHolders: async (find, values) =>
      (await find.findByDigests(values)).flatMap((key): Holder[] => [
        [key.digest, key],
        [key.previousDigest, key],
      ]),
    inStore: (_, { name }) => `The API key "${name}" already has this secret.`,
    inFile: (line) => `Line ${line} has the same secret.`,
  },
  {
    code: 'PREFIX_TAKEN',
    valueOf: ({ publicId }) => publicId,
    findHolders: findHoldersBy('publicId'),
    inStore: ({ publicId }, { name }) => `The API key "${name}" already has the prefix ${prefixOf(publicId)}.`,
    inFile: (line) => `Line ${line} has the same prefix.`,
  },
  {
    code: 'ID_TAKEN',
    valueOf: ({ id }) => id,
    findHolders: findHoldersBy('id'),
    inStore: (_, { name }) => `The API key "${name}" already has this id.`,
    inFile: (line) => `Line ${line} has the same id.`,
  },
];

function findHoldersBy(field: 'id' | 'name' | 'publicId') {
  return async (find: KeyFinder, values: readonly string[]): Promise<Holder[]> =>
    (await find.findBy(field, values)).map((key) => [key[field], key]);
}

/** Checks whether the keys of all lines can be imported, and imports none. */
export async function checkImport(
  find: KeyFinder,
  lines: readonly ImportLine[],
  rules: ImportRules,
): Promise<ImportReport> {
  const conflicts = await findConflicts(find, lines, rules);
  const likenesses = await findLikenesses(find, lines);
  const checked = lines.map(({ line, name, ...found }): LineReport => {
    const errors = [...found.errors, ...(conflicts.get(line) ?? [])];
    const warnings = [...found.warnings, ...(likenesses.get(name) ?? [])];
    return {
      line,
      status: errors.length > 0 ? 'failed' : 'not imported',
      name,
      id: null,
      prefix: null,
      errors,
      warnings,
    };
  });
  return { imported: 0, failed: checked.filter(({ status }) => status === 'failed').length, lines: checked };
}

/** Warnings of names that look like others, by the name. */
async function findLikenesses(
  find: KeyFinder,
  lines: readonly ImportLine[],
): Promise<Map<string | null, ImportWarning[]>> {
  const names = buildKeys(lines).map(({ name }) => name);
  const confusable = await findConfusableNames(OPERATOR, find, [...new Set(names)]);
  return new Map(
    confusable.map((likeness) => [
      likeness.name,
      warningsOf([likeness]).map((message): ImportWarning => ({ code: 'NAME_CONFUSABLE', message })),
    ]),
  );
}

/** Conflicts with existing keys and with earlier lines, by the number of the line. */
async function findConflicts(
  find: KeyFinder,
  lines: readonly ImportLine[],
  rules: ImportRules,
): Promise<Map<number, ImportProblem[]>> {
  const conflicts = new Map<number, ImportProblem[]>();
  const add = (line: number, code: ErrorCode, message: string) => {
    const known = conflicts.get(line);
    if (known) known.push({ code, message });
    else conflicts.set(line, [{ code, message }]);
  };
  for (const unique of UNIQUE) {
    const holders = new Map(await unique.findHolders(find, buildKeys(lines).map(unique.valueOf)));
    const seen = new Map<string, number>();
    for (const { line, key } of lines) {
      if (!key) continue;
      const value = unique.valueOf(key);
      const holder = holders.get(value);
      const earlierLine = seen.get(value);
      if (holder) add(line, unique.code, unique.inStore(key, holder));
      else if (earlierLine !== undefined) add(line, unique.code, unique.inFile(earlierLine));
      else seen.set(value, line);
    }
  }
  await validateCreators(find, lines, (line, { code, message }) => add(line, code, message));
  await validateCounts(find, lines, rules, (line, message) => add(line, 'POLICY_VIOLATED', message));
  return conflicts;
}

function buildKeys(lines: readonly ImportLine[]): StoredKey[] {
  return lines.flatMap(({ key }) => key ?? []);
}

/** What the keys of all lines are checked by, at a time in milliseconds since 1970. */
interface ImportRules {
  catalog: Catalog;
  now: number;
}

const CREATOR_MISSING: ImportProblem = {
  code: 'NOT_FOUND',
  message: 'No key in the store or on an earlier line has the id in "createdBy". Leave it out, or put that key first.',
};
const CHAIN_TOO_LONG: ImportProblem = {
  code: 'CHAIN_TOO_LONG',
  message: `More than ${MAX_CHAIN_LENGTH} keys would have created one another. Leave "createdBy" out.`,
};

/** Checks that each creator is there, and that no chain gets too long. */
async function validateCreators(
  find: KeyFinder,
  lines: readonly ImportLine[],
  report: (line: number, problem: ImportProblem) => void,
): Promise<void> {
  const creators = new Set(lines.flatMap(({ key }) => key?.createdBy ?? []));
  const ancestors = await find.findAncestors([...creators]);
  /** How many keys the chain of a key on an earlier line has, by its id. */
  const lengths = new Map<string, number>();
  const lengthOf = (id: string): number | undefined => {
    const ancestor = ancestors.get(id);
    if (!ancestor) return lengths.get(id);
    // An ancestor that is not among those found is too far up.
    return ancestor.createdBy === null ? 1 : (lengthOf(ancestor.createdBy) ?? MAX_CHAIN_LENGTH) + 1;
  };
  for (const { line, id, key } of lines) {
    const above = key?.createdBy ? lengthOf(key.createdBy) : 0;
    if (above === undefined) report(line, CREATOR_MISSING);
    else if (above >= MAX_CHAIN_LENGTH) report(line, CHAIN_TOO_LONG);
    if (id !== undefined) lengths.set(id, (above ?? 0) + 1);
  }
}

/** Checks that no key would have created more live keys than the policy allows. */
async function validateCounts(
  find: KeyFinder,
  lines: readonly ImportLine[],
  { catalog, now }: ImportRules,
  report: (line: number, message: string) => void,
): Promise<void> {
  const { maxKeysPerCreator: most } = catalog.policy;
  if (most === null) return;
  const counts = new Map<string, number>();
  for (const { line, key } of lines) {
    if (!key?.createdBy || statusOf(key, now) !== 'ACTIVE') continue;
    const count = (counts.get(key.createdBy) ?? (await find.countLive(key.createdBy, now))) + 1;
    counts.set(key.createdBy, count);
    if (count > most) report(line, tooMany(key.name, count, catalog));
  }
}

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

interface ImportOptions extends ImportRules {
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
  return [computeSkeleton(name), publicId, digest];
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
