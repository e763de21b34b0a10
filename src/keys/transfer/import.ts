import { setTimeout as delay } from 'node:timers/promises';
import type { AuditDraft, AuditReader } from '../audit/index.ts';
import { type Link, MAX_CHAIN_LENGTH, OPERATOR, tooMany } from '../authorization/index.ts';
import { findConfusableNames, type Parts, type Place, warningsOf } from '../changes/index.ts';
import {
  declarePort,
  type ErrorCode,
  isKeysError,
  KeysError,
  NameTakenError,
  type ProgressReport,
} from '../basics/index.ts';
import { type ApiKey, statusOf, type StoredKey } from '../key/index.ts';
import type { KeyFinder, KeyRepository, StoredKeyFinder } from '../repository/index.ts';
import { prefixOf } from '../secret/index.ts';
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

/** The same, with lines that are read one after another: they may be more than fit in memory. */
export interface ImportOutcome extends Omit<ImportReport, 'lines'> {
  /** The number of lines, without the empty ones. */
  total: number;
  /** Why lines failed: each code once, that of the first problem first. */
  codes: readonly ErrorCode[];
  /** One entry per line. They can be read until the outcome was used. */
  lines: () => Iterable<LineReport>;
}

/** The values of a key that no other may have. */
export type UniqueField = 'name' | 'digest' | 'publicId' | 'id';

/** A value of the key of a line. */
export interface LineValue {
  line: number;
  value: string;
}

/** A key that another created, and the number of its line. */
export interface ChildLine {
  line: number;
  key: StoredKey;
}

/** Where the chain of a key on a line ends. */
export interface LineChain {
  /** How many keys it has. */
  length: number;
  /** Whether one of them is in the store. */
  isInStore: boolean;
}

/** The lines of an import, outside of memory. Lists of them come in pages. */
export interface ImportSpool {
  /** Adds lines, in their order. */
  add(lines: readonly ImportLine[]): void;
  /** No more lines are added. */
  complete(): void;
  /** Forgets what was found of lines since then. */
  restart(): void;
  /** How many lines have keys, how many there are, and how many failed. */
  counts(): { keys: number; total: number; failed: number };
  /** See `ImportOutcome`. */
  codes(): ErrorCode[];
  /** See `ImportOutcome`. */
  reports(isImported: boolean): Generator<LineReport>;
  /** The values of all keys, in their order, those that are the same by line. */
  values(field: UniqueField): Generator<LineValue[]>;
  /** The names of all keys: those that look the same come together, by line. */
  names(): Generator<LineValue[]>;
  /** The keys that others created, by line or by creator. */
  children(order: 'line' | 'creator'): Generator<ChildLine[]>;
  /** The chain of the key with an id on an earlier line; undefined if there is none. */
  chainOf(id: string, before: number): LineChain | undefined;
  setChain(line: number, chain: LineChain): void;
  /** Adds a problem or a warning to a line. */
  note(kind: 'error' | 'warning', line: number, remark: ImportProblem | ImportWarning): void;
  /** Whether keys depend on these or on the keys with these ids, by something unique, a name's look, or a creator. */
  dependsOn(ids: readonly string[], keys: readonly StoredKey[]): boolean;
  close(): void;
}

/** Values that must be unique, with what they are called, and the messages for those that a key has already. */
const UNIQUE: readonly {
  code: ErrorCode;
  field: UniqueField;
  word: string;
  inStore: (value: string, holder: ApiKey) => string;
}[] = [
  { code: 'NAME_TAKEN', field: 'name', word: 'name', inStore: (name) => new NameTakenError(name, false).message },
  { code: 'SECRET_TAKEN', field: 'digest', word: 'secret', inStore: (_, { name }) => hasAlready(name, 'this secret') },
  {
    code: 'PREFIX_TAKEN',
    field: 'publicId',
    word: 'prefix',
    inStore: (publicId, { name }) => hasAlready(name, `the prefix ${prefixOf(publicId)}`),
  },
  { code: 'ID_TAKEN', field: 'id', word: 'id', inStore: (_, { name }) => hasAlready(name, 'this id') },
];

function hasAlready(name: string, what: string): string {
  return `The API key "${name}" already has ${what}.`;
}

/** The keys that have these values, by them. */
async function findHolders(
  find: KeyFinder,
  field: UniqueField,
  values: readonly string[],
): Promise<Map<string | null, ApiKey>> {
  if (field !== 'digest') return new Map((await find.findBy(field, values)).map((key) => [key[field], key]));
  const keys = await find.findByDigests(values);
  return new Map(keys.flatMap((key) => [key.digest, key.previousDigest].map((digest) => [digest, key])));
}

/** Notes whether the keys of all lines can be imported, and imports none. */
export async function checkImport(find: KeyFinder, spool: ImportSpool, rules: ImportRules): Promise<ImportOutcome> {
  spool.restart();
  await noteConflicts(find, spool);
  await noteCreators(find, spool);
  await noteCounts(find, spool, rules);
  await noteLikenesses(find, spool);
  return outcomeOf(spool, 0);
}

function outcomeOf(spool: ImportSpool, imported: number): ImportOutcome {
  const { total, failed } = spool.counts();
  return { imported, failed, total, codes: spool.codes(), lines: () => spool.reports(imported > 0) };
}

/** Notes conflicts with existing keys and with earlier lines. */
async function noteConflicts(find: KeyFinder, spool: ImportSpool): Promise<void> {
  for (const { code, field, word, inStore } of UNIQUE) {
    let first: LineValue | undefined;
    for (const page of spool.values(field)) {
      const values = page.map(({ value }) => value);
      const holders = await findHolders(find, field, values);
      for (const { line, value } of page) {
        const holder = holders.get(value);
        if (holder) spool.note('error', line, { code, message: inStore(value, holder) });
        else if (first?.value !== value) first = { line, value };
        else spool.note('error', line, { code, message: `Line ${first.line} has the same ${word}.` });
      }
    }
  }
}

/** Notes names that look like others. */
async function noteLikenesses(find: KeyFinder, spool: ImportSpool): Promise<void> {
  for (const page of spool.names()) {
    const names = page.map(({ value }) => value);
    const confusable = await findConfusableNames(OPERATOR, find, [...new Set(names)]);
    const messages = new Map(confusable.map((likeness) => [likeness.name, warningsOf([likeness])]));
    for (const { line, value } of page)
      for (const message of messages.get(value) ?? [])
        spool.note('warning', line, { code: 'NAME_CONFUSABLE', message });
  }
}

/** What the keys of all lines are checked by. */
type ImportRules = Pick<Place, 'catalog' | 'now'>;

const CREATOR_MISSING: ImportProblem = {
  code: 'NOT_FOUND',
  message: 'No key in the store or on an earlier line has the id in "createdBy". Leave it out, or put that key first.',
};
const CHAIN_TOO_LONG: ImportProblem = {
  code: 'CHAIN_TOO_LONG',
  message: `More than ${MAX_CHAIN_LENGTH} keys would have created one another. Leave "createdBy" out.`,
};

/** Checks that each creator is there, and that no chain gets too long. */
async function noteCreators(find: KeyFinder, spool: ImportSpool): Promise<void> {
  for (const page of spool.children('line')) {
    const ancestors = await find.findAncestors([...new Set(page.map(({ key }) => key.createdBy!))]);
    for (const { line, key } of page) {
      const inStore = lengthIn(ancestors, key.createdBy!);
      const above = inStore === undefined ? spool.chainOf(key.createdBy!, line) : { length: inStore, isInStore: true };
      if (!above) spool.note('error', line, CREATOR_MISSING);
      else if (above.length >= MAX_CHAIN_LENGTH) spool.note('error', line, CHAIN_TOO_LONG);
      spool.setChain(line, { length: (above?.length ?? 0) + 1, isInStore: above?.isInStore ?? false });
    }
  }
}

/** How many keys the chain of a key in the store has; undefined if it is not there. */
function lengthIn(ancestors: ReadonlyMap<string, Pick<Link, 'createdBy'>>, id: string): number | undefined {
  const ancestor = ancestors.get(id);
  if (!ancestor) return undefined;
  // An ancestor that is not among those found is too far up.
  return ancestor.createdBy === null ? 1 : (lengthIn(ancestors, ancestor.createdBy) ?? MAX_CHAIN_LENGTH) + 1;
}

/** Checks that no key would have created more live keys than the policy allows. */
async function noteCounts(find: KeyFinder, spool: ImportSpool, { catalog, now }: ImportRules): Promise<void> {
  const { maxKeysPerCreator: most } = catalog.policy;
  if (most === null) return;
  let [creator, count] = ['', 0];
  for (const page of spool.children('creator'))
    for (const { line, key } of page) {
      if (statusOf(key, now) !== 'ACTIVE') continue;
      if (key.createdBy !== creator) [creator, count] = [key.createdBy!, await find.countLive(key.createdBy!, now)];
      count += 1;
      if (count > most)
        spool.note('error', line, { code: 'POLICY_VIOLATED', message: tooMany(key.name, count, catalog) });
    }
}

/** What the audit log says of each key of an import. */
export type ImportEntry = Pick<AuditDraft, 'at' | 'actor' | 'action'>;

/** Keeps lines of imports. */
export interface Spools {
  open(): Promise<ImportSpool>;
  /** Makes what is to be known of the keys of all lines before they are inserted. @throws KeysError STORE_AUDIT_KEY */
  prepare(spool: ImportSpool, entry: ImportEntry): Promise<void>;
  /** Whether nothing is left to be done for imports, such as for one that was killed. */
  isFinished(): Promise<boolean>;
  /** Lets so many keys that are new be found fast. */
  settle(keys: number): Promise<void>;
}

/** Inserts the keys of an import, which nobody sees until they are published, in transactions. */
export interface ImportWriter extends Spools {
  /**
   * Inserts all keys where others need not wait for that: see `RepositoryWriteOptions.before`.
   * @param onProgress is told how many more are inserted
   * @throws OTHER_IMPORT, and what `giveWay` throws
   */
  insertAll(spool: ImportSpool, onProgress: (added: number) => Promise<void>): Promise<void>;
  /** Gives way to who waits for something that the keys have. @throws OUTDATED_IMPORT */
  giveWay(): Promise<void>;
  /** Where they would, inserts some keys. @returns how many; 0 once all are there @throws OTHER_, OUTDATED_IMPORT */
  insertSome(spool: ImportSpool): Promise<number>;
  /** Makes the keys those of the store. @throws OUTDATED_IMPORT where others have written what some of them had */
  publish(spool: ImportSpool, entry: ImportEntry): Promise<void>;
  /** Keys that were inserted, and not published, are to be removed. */
  abandon(spool: ImportSpool): Promise<void>;
  /** Writes some entries of published keys, or removes some keys that were not published. @returns whether any */
  finishSome(): Promise<boolean>;
}
/** The port for it. */
export const IMPORTS = declarePort<Spools, ImportWriter>('imports');

interface ImportOptions extends Parts {
  /** When they were asked to be imported, in milliseconds since 1970. */
  now: number;
  /** Is told how many keys are inserted. */
  onProgress?: ProgressReport | undefined;
}

/** How long others have the lock of a file for themselves after each transaction: they ask now and then. */
const REST_MS = 20;
/** How often it is looked whether another import has ended. */
const OTHER_MS = 200;

/** What was checked may no longer count. Nobody is told: all is checked again. */
export const OUTDATED_IMPORT = new KeysError('STORE_LOCKED', 'Keys were changed while they were imported.');
/** One import at a time inserts keys. Nobody is told: the other one is waited for. */
export const OTHER_IMPORT = new KeysError('STORE_LOCKED', 'Other keys are being imported.');

/**
 * Imports the keys of all lines, or none if one of them fails. They are checked, and inserted, while others write; then
 * it is looked at what was changed since, and all keys are there at once.
 */
export async function importKeys(spool: ImportSpool, options: ImportOptions): Promise<ImportOutcome> {
  const { repository, transactions, operator, now, onProgress } = options;
  const entry = { at: now, actor: { kind: 'CLI', id: null, name: operator }, action: 'IMPORT' } as const;
  for (let failure: unknown; ;) {
    await finishImports(repository);
    const head = await repository.auditLog.head();
    const outcome = await checkImport(repository, spool, options);
    const { keys } = spool.counts();
    if (outcome.failed > 0 || keys === 0) return outcome;
    // What is taken, but not found, is not taken by a key.
    if (failure !== undefined) throw failure;
    await repository.port(IMPORTS).prepare(spool, entry);
    let [done, checked] = [0, head?.number ?? 0];
    const report = async (added: number) => onProgress?.((done += added), keys);
    const insertSome = () =>
      transactions.run(OPERATOR, async (transaction) => {
        checked = await changesSince(transaction, checked, spool);
        return transaction.port(IMPORTS).insertSome(spool);
      });
    try {
      for (let added = await insertSome(); added > 0; added = await insertSome()) {
        await report(added);
        await delay(REST_MS);
      }
      await transactions.run(
        OPERATOR,
        async (transaction) => {
          checked = await changesSince(transaction, checked, spool);
          await transaction.port(IMPORTS).publish(spool, entry);
        },
        {
          now,
          async before(writer) {
            done = 0;
            const port = writer.port(IMPORTS);
            await port.insertAll(spool, async (added) => {
              await report(added);
              checked = await changesSince({ auditLog: writer.auditLog, find: writer }, checked, spool);
            });
            return () => port.giveWay();
          },
        },
      );
    } catch (error) {
      // Otherwise it is found to be abandoned later.
      await transactions.run(OPERATOR, (transaction) => transaction.port(IMPORTS).abandon(spool)).catch(() => {});
      if (error === OTHER_IMPORT) await delay(OTHER_MS);
      // Another key has got it since all was checked.
      else if (isKeysError(error) && TAKEN.has(error.code)) failure = error;
      else if (error !== OUTDATED_IMPORT) throw error;
      continue;
    }
    // The keys are there: what fails is done by the next one, or by the database server.
    await finishImports(repository)
      .then(() => repository.port(IMPORTS).settle(keys))
      .catch(() => {});
    return outcomeOf(spool, keys);
  }
}

const TAKEN: ReadonlySet<ErrorCode> = new Set(UNIQUE.map(({ code }) => code));

/** With so many changes meanwhile, or more, the rest is looked at next. */
const MAX_CHANGES = 1000;

/**
 * Looks at the keys that were changed after an entry of the audit log.
 * @returns the last entry that was looked at
 * @throws OUTDATED_IMPORT where they have, or had, something to do with these keys
 */
async function changesSince(
  { auditLog, find }: { auditLog: AuditReader; find: StoredKeyFinder },
  after: number,
  spool: ImportSpool,
): Promise<number> {
  if (((await auditLog.start())?.number ?? 0) > after) throw OUTDATED_IMPORT;
  for (let last = after; ;) {
    const entries = await auditLog.find({ order: 'oldest', after: last, limit: MAX_CHANGES });
    const ids = [
      ...new Set(entries.flatMap(({ action, apiKey: key }) => (action !== 'REFUSE' && key ? [key.id] : []))),
    ];
    if (ids.length > 0 && spool.dependsOn(ids, await find.findBy('id', ids))) throw OUTDATED_IMPORT;
    last = entries.at(-1)?.number ?? last;
    if (entries.length < MAX_CHANGES) return last;
  }
}

/**
 * Does what is left to be done for imports, in short transactions: for one that has just published its keys, or for one
 * that was killed.
 */
export async function finishImports(repository: KeyRepository): Promise<void> {
  while (!(await repository.port(IMPORTS).isFinished())) {
    await repository.write((writer) => writer.port(IMPORTS).finishSome());
    if (repository.kind === 'sqlite') await delay(REST_MS);
  }
}
