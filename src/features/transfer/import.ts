import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { type Link, MAX_CHAIN_LENGTH, OPERATOR, tooMany } from '../../keys/authorization/index.ts';
import { findConfusableNames, type Parts, type Place, type Transaction, warningsOf } from '../../keys/changes/index.ts';
import {
  declarePort,
  type ErrorCode,
  isKeysError,
  KeysError,
  NameTakenError,
  type ProgressReport,
} from '../../keys/basics/index.ts';
import { type ApiKey, fieldChanges, identityFields, namesOf, statusOf, type StoredKey } from '../../keys/key/index.ts';
import type { KeyFinder } from '../../keys/repository/index.ts';
import { prefixOf } from '../../keys/secret/index.ts';
import type { GeneratedField, ImportLine, ImportProblem, ImportWarning } from './read-import.ts';

/** The outcome for one line. */
export interface LineReport {
  /** Its number, counted from 1. */
  line: number;
  /**
   * `unchanged`: the store has the key as the line says. `not imported`: the line itself is valid, but another one
   * failed, or it was a dry run.
   */
  status: 'imported' | 'unchanged' | 'failed' | 'not imported';
  /** The name of the key; null if it is invalid. */
  name: string | null;
  /** The id of the key, if it is in the store. */
  id: string | null;
  /** The prefix of the key, if it is in the store. */
  prefix: string | null;
  /** Reasons the line failed. */
  errors: readonly ImportProblem[];
  /** Warnings about the key. */
  warnings: readonly ImportWarning[];
}

/** The outcome of an import. */
export interface ImportOutcome {
  /** The number of lines, without the empty ones. */
  total: number;
  /** The number of keys that were imported. */
  imported: number;
  /** The number of lines whose keys the store had already. */
  unchanged: number;
  /** The number of lines that failed. */
  failed: number;
  /** Codes of failures, each once, in order of the first problem. */
  codes: readonly ErrorCode[];
  /** An entry for each line, read one at a time until the callback returns. */
  lines: () => Iterable<LineReport>;
}

/** Values of a key that must be unique. */
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

/** The key of a line. */
export interface KeyLine extends ChildLine {
  /** The fields of the key that the line does not give. */
  generated: readonly GeneratedField[];
}

/** The chain of parents of a key on a line. */
export interface LineChain {
  /** Number of keys. */
  length: number;
  /** One of them is in the store. */
  isInStore: boolean;
}

/** Lines that are compared with a store. Lists of them come in pages, without those that are unchanged. */
interface ComparedLines {
  /** The values of all keys: those that are the same come together, by line. */
  values(field: UniqueField): Iterable<LineValue[]>;
  /** The key of a line. */
  keyOn(line: number): KeyLine;
  /** The store has the key of a line already. */
  setUnchanged(line: number, held: ApiKey): void;
  /** The keys that others created, by line or by creator. */
  children(order: 'line' | 'creator'): Iterable<ChildLine[]>;
  /** The chain of the key with an id on an earlier line; undefined if there is none. */
  chainOf(id: string, before: number): LineChain | undefined;
  setChain(line: number, chain: LineChain): void;
  /** Adds a problem to a line. */
  note(kind: 'error', line: number, remark: ImportProblem): void;
}

/** The lines of an import, outside of memory. */
export interface ImportSpool extends ComparedLines {
  /** Adds lines, in their order. */
  add(lines: readonly ImportLine[]): void;
  /** No more lines are added. */
  complete(): void;
  /** The names of all keys: those that look the same come together, by line. */
  names(): Iterable<LineValue[]>;
  /** Adds a problem or a warning to a line. */
  note(kind: 'error' | 'warning', line: number, remark: ImportProblem | ImportWarning): void;
  /** The first keys that are to be imported of the lines after one. */
  keysAfter(line: number, limit: number): KeyLine[];
  /** Records that the keys up to a line were imported, except for unchanged ones. */
  setImported(count: number, upTo: number): void;
  /** Counts of lines by outcome. */
  counts(): Pick<ImportOutcome, 'total' | 'imported' | 'unchanged' | 'failed'>;
  /** See `ImportOutcome`. */
  codes(): ErrorCode[];
  /** See `ImportOutcome`. */
  reports(): Generator<LineReport>;
  close(): void;
}

/** Some lines of an import, in memory. Their values differ. */
class Piece implements ComparedLines {
  readonly unchanged = new Map<number, ApiKey>();
  readonly problems = new Map<number, ImportProblem[]>();
  readonly #lines: ReadonlyMap<number, KeyLine>;
  readonly #chains: Map<string, LineChain>;

  constructor(lines: readonly KeyLine[]) {
    this.#lines = new Map(lines.map((line) => [line.line, line]));
    this.#chains = new Map(lines.map(({ key }) => [key.id, { length: 1, isInStore: false }]));
  }

  /** The lines that are not unchanged. */
  open(): KeyLine[] {
    return [...this.#lines.values()].filter(({ line }) => !this.unchanged.has(line));
  }

  *values(field: UniqueField): Generator<LineValue[]> {
    yield this.open().map(({ line, key }) => ({ line, value: key[field] }));
  }

  keyOn(line: number): KeyLine {
    return this.#lines.get(line)!;
  }

  setUnchanged(line: number, held: ApiKey): void {
    this.unchanged.set(line, held);
  }

  *children(order: 'line' | 'creator'): Generator<ChildLine[]> {
    const children = this.open().filter(({ key }) => key.createdBy !== null);
    yield order === 'line' ? children : [...Map.groupBy(children, ({ key }) => key.createdBy).values()].flat();
  }

  chainOf(id: string): LineChain | undefined {
    return this.#chains.get(id);
  }

  setChain(line: number, chain: LineChain): void {
    this.#chains.set(this.keyOn(line).key.id, chain);
  }

  note(_kind: 'error', line: number, problem: ImportProblem): void {
    this.problems.set(line, [...(this.problems.get(line) ?? []), problem]);
  }
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
  if (field === 'digest') return findByDigests(find, values);
  return new Map((await find.findBy(field, values)).map((key) => [key[field], key]));
}

async function findByDigests(find: KeyFinder, digests: readonly string[]): Promise<Map<string | null, StoredKey>> {
  const keys = await find.findByDigests(digests);
  return new Map(keys.flatMap((key) => [key.digest, key.previousDigest].map((digest) => [digest, key])));
}

/** Notes whether the keys of all lines can be imported, and imports none. */
export async function checkImport(find: KeyFinder, spool: ImportSpool, rules: ImportRules): Promise<ImportOutcome> {
  await compareLines(find, spool, rules);
  await noteLikenesses(find, spool);
  return outcomeOf(spool);
}

function outcomeOf(spool: ImportSpool): ImportOutcome {
  return { ...spool.counts(), codes: spool.codes(), lines: () => spool.reports() };
}

/** Finds lines whose keys are already in the store, and problems of others. */
async function compareLines(find: KeyFinder, lines: ComparedLines, rules: ImportRules): Promise<void> {
  await noteConflicts(find, lines);
  await noteCreators(find, lines);
  await noteCounts(find, lines, rules);
}

/** The keys in the store that are as lines say, by these. */
async function findUnchanged(find: KeyFinder, lines: readonly KeyLine[]): Promise<Map<number, StoredKey>> {
  const holders = await findByDigests(
    find,
    lines.map(({ key }) => key.digest),
  );
  return new Map(
    lines.flatMap((line) => {
      const holder = holders.get(line.key.digest);
      return holder && isAsIn(line, holder) ? [[line.line, holder] as const] : [];
    }),
  );
}

/** Checks whether a key matches its line. */
function isAsIn({ key, generated }: KeyLine, held: StoredKey): boolean {
  const given = (['id', 'publicId', 'createdAt'] as const).filter((field) => !generated.includes(field));
  const compared = ['digest', ...namesOf(identityFields), ...given] as const;
  return (
    !held.damaged &&
    fieldChanges(held, key).length === 0 &&
    compared.every((field) => isDeepStrictEqual(key[field], held[field]))
  );
}

/**
 * Finds the lines whose keys are in the store as they say, the first one of those that are alike, and notes conflicts
 * of others with existing keys and with earlier lines. Another import can bring a key between two values.
 */
async function noteConflicts(find: KeyFinder, lines: ComparedLines): Promise<void> {
  const repeated = new Set<number>();
  for (const { code, field, word, inStore } of UNIQUE) {
    let first: LineValue | undefined;
    let held: string | undefined;
    for (const page of lines.values(field)) {
      const values = page.map(({ value }) => value);
      const holders = await findHolders(find, field, values);
      const unchanged = await findUnchanged(
        find,
        page.filter(({ value }) => holders.has(value)).map(({ line }) => lines.keyOn(line)),
      );
      for (const { line, value } of page) {
        const holder = holders.get(value);
        const same = repeated.has(line) ? undefined : unchanged.get(line);
        if (same && held !== value) {
          held = value;
          lines.setUnchanged(line, same);
          continue;
        }
        if (same) repeated.add(line);
        if (holder) lines.note('error', line, { code, message: inStore(value, holder) });
        else if (first?.value !== value) first = { line, value };
        else lines.note('error', line, { code, message: `Line ${first.line} has the same ${word}.` });
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

/** Rules for the keys of all lines. */
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
async function noteCreators(find: KeyFinder, lines: ComparedLines): Promise<void> {
  for (const page of lines.children('line')) {
    const ancestors = await find.findAncestors([...new Set(page.map(({ key }) => key.createdBy!))]);
    for (const { line, key } of page) {
      const inStore = lengthIn(ancestors, key.createdBy!);
      const above = inStore === undefined ? lines.chainOf(key.createdBy!, line) : { length: inStore, isInStore: true };
      if (!above) lines.note('error', line, CREATOR_MISSING);
      else if (above.length >= MAX_CHAIN_LENGTH) lines.note('error', line, CHAIN_TOO_LONG);
      lines.setChain(line, { length: (above?.length ?? 0) + 1, isInStore: above?.isInStore ?? false });
    }
  }
}

/** Length of the chain of a key in the store; undefined if it is not there. */
function lengthIn(ancestors: ReadonlyMap<string, Pick<Link, 'createdBy'>>, id: string): number | undefined {
  const ancestor = ancestors.get(id);
  if (!ancestor) return undefined;
  // An ancestor that is not among those found is too far up.
  return ancestor.createdBy === null ? 1 : (lengthIn(ancestors, ancestor.createdBy) ?? MAX_CHAIN_LENGTH) + 1;
}

/** Checks that no key would have created more live keys than the policy allows. */
async function noteCounts(find: KeyFinder, lines: ComparedLines, { catalog, now }: ImportRules): Promise<void> {
  const { maxKeysPerCreator: most } = catalog.policy;
  if (most === null) return;
  let [creator, count] = ['', 0];
  for (const page of lines.children('creator'))
    for (const { line, key } of page) {
      if (statusOf(key, now) !== 'ACTIVE') continue;
      if (key.createdBy !== creator) [creator, count] = [key.createdBy!, await find.countLive(key.createdBy!, now)];
      count += 1;
      if (count > most)
        lines.note('error', line, { code: 'POLICY_VIOLATED', message: tooMany(key.name, count, catalog) });
    }
}

/** Keeps lines of imports. */
export interface Spools {
  open(): Promise<ImportSpool>;
  /** Lets so many keys that are new be found fast. */
  settle(keys: number): Promise<void>;
}
/** The port for it. */
export const IMPORTS = declarePort<Spools, Spools>('imports');

interface ImportOptions extends Parts {
  /** Start of the import, in milliseconds since 1970. */
  now: number;
  /** Called with the number of keys imported so far. */
  onProgress?: ProgressReport | undefined;
}

/** Keys inserted in one transaction, which blocks others. */
const PIECE_KEYS = 200;
/** Pause after each transaction, in milliseconds, so that others get the lock of the file, which they poll for. */
const REST_MS = 20;

/**
 * Imports the keys of all lines, unless one fails. Short transactions each compare their lines with the store again: a
 * line that fails now because keys have changed stops the import.
 */
export async function importKeys(spool: ImportSpool, options: ImportOptions): Promise<ImportOutcome> {
  const { repository, transactions, onProgress } = options;
  const checked = await checkImport(repository, spool, options);
  if (checked.failed > 0) return checked;
  const keys = checked.total - checked.unchanged;
  let done = 0;
  for (let after = 0; ;) {
    const lines = spool.keysAfter(after, PIECE_KEYS);
    if (lines.length === 0) break;
    if (after > 0 && repository.kind === 'sqlite') await delay(REST_MS);
    const { piece, imported } = await transactions
      .run(OPERATOR, (transaction) => importPiece(transaction, lines, options))
      .catch((error: unknown) => {
        throw withCount(error, done, keys);
      });
    for (const [line, held] of piece.unchanged) spool.setUnchanged(line, held);
    for (const [line, problems] of piece.problems) for (const problem of problems) spool.note('error', line, problem);
    if (piece.problems.size > 0) break;
    after = lines.at(-1)!.line;
    done += imported;
    spool.setImported(imported, after);
    await onProgress?.(done, keys);
  }
  // The keys are there: what fails is done by the database server.
  await repository
    .port(IMPORTS)
    .settle(done)
    .catch(() => {});
  return outcomeOf(spool);
}

/** Inserts the keys of some lines, unless one of them fails. */
async function importPiece(
  transaction: Transaction,
  lines: readonly KeyLine[],
  rules: ImportRules,
): Promise<{ piece: Piece; imported: number }> {
  const piece = new Piece(lines);
  await compareLines(transaction.find, piece, rules);
  if (piece.problems.size > 0) return { piece, imported: 0 };
  const keys = piece.open().map(({ key }) => key);
  if (keys.length > 0) await transaction.insert(keys, 'IMPORT');
  return { piece, imported: keys.length };
}

/** The error that ended an import, with how many keys were imported by then. */
function withCount(error: unknown, done: number, keys: number): unknown {
  if (done === 0 || !isKeysError(error)) return error;
  const message = `${error.message} ${done} of ${keys} keys were imported before that. Run it again to import the others.`;
  return new KeysError(error.code, message, { cause: error });
}
