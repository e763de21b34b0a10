import type { StoredKey } from '../key/api-key.ts';
import { type ErrorCode, NameTakenError } from '../errors.ts';
import type { ImportLine, ImportProblem, ImportWarning } from './read-import.ts';
import type { StoredKeyFinder } from '../repository.ts';
import { findConfusableNames, warningsOf } from '../changes/confusable-names.ts';
import { MAX_CHAIN_LENGTH } from '../authorization/chain.ts';
import { OPERATOR } from '../authorization/principal.ts';
import { prefixOf } from '../secret/secret.ts';
import type { Transaction } from '../changes/transaction.ts';

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

/** Values that must be unique, and the messages for those that are not. */
const UNIQUE: readonly {
  code: ErrorCode;
  valueOf: (key: StoredKey) => string;
  find: (find: StoredKeyFinder, values: readonly string[]) => Promise<StoredKey[]>;
  valuesOf: (found: StoredKey) => readonly (string | null)[];
  inStore: (key: StoredKey, holder: StoredKey) => string;
  inFile: (line: number) => string;
}[] = [
  {
    code: 'NAME_TAKEN',
    valueOf: ({ name }) => name,
    find: (find, values) => find.findBy('name', values),
    valuesOf: ({ name }) => [name],
    inStore: ({ name }) => new NameTakenError(name, false).message,
    inFile: (line) => `Line ${line} has the same name.`,
  },
  {
    code: 'SECRET_TAKEN',
    valueOf: ({ digest }) => digest,
    find: (find, values) => find.findByDigests(values),
    valuesOf: ({ digest, previousDigest }) => [digest, previousDigest],
    inStore: (_, { name }) => `The API key "${name}" already has this secret.`,
    inFile: (line) => `Line ${line} has the same secret.`,
  },
  {
    code: 'PREFIX_TAKEN',
    valueOf: ({ publicId }) => publicId,
    find: (find, values) => find.findBy('publicId', values),
    valuesOf: ({ publicId }) => [publicId],
    inStore: ({ publicId }, { name }) => `The API key "${name}" already has the prefix ${prefixOf(publicId)}.`,
    inFile: (line) => `Line ${line} has the same prefix.`,
  },
  {
    code: 'ID_TAKEN',
    valueOf: ({ id }) => id,
    find: (find, values) => find.findBy('id', values),
    valuesOf: ({ id }) => [id],
    inStore: (_, { name }) => `The API key "${name}" already has this id.`,
    inFile: (line) => `Line ${line} has the same id.`,
  },
];

/** Imports the keys of all lines, or none if one of them fails. With `dryRun` it only checks them. */
export async function importKeys(
  transaction: Transaction,
  lines: readonly ImportLine[],
  { dryRun }: { dryRun: boolean },
): Promise<ImportReport> {
  const conflicts = await findConflicts(transaction.find, lines);
  const likenesses = await findLikenesses(transaction.find, lines);
  const checked = lines.map((line) => ({
    ...line,
    errors: [...line.errors, ...(conflicts.get(line.line) ?? [])],
    warnings: [...line.warnings, ...(likenesses.get(line.name) ?? [])],
  }));
  const failed = checked.filter(({ errors }) => errors.length > 0).length;
  const doesImport = failed === 0 && !dryRun;
  if (doesImport) await transaction.insert(keysOf(lines), 'IMPORT');
  return {
    imported: doesImport ? lines.length : 0,
    failed,
    lines: checked.map(({ line, name, key, errors, warnings }) => ({
      line,
      status: errors.length > 0 ? 'failed' : doesImport ? 'imported' : 'not imported',
      name,
      id: doesImport && key ? key.id : null,
      prefix: doesImport && key ? prefixOf(key.publicId) : null,
      errors,
      warnings,
    })),
  };
}

/** Warnings of names that look like others, by the name. */
async function findLikenesses(
  find: StoredKeyFinder,
  lines: readonly ImportLine[],
): Promise<Map<string | null, ImportWarning[]>> {
  const names = keysOf(lines).map(({ name }) => name);
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
  find: StoredKeyFinder,
  lines: readonly ImportLine[],
): Promise<Map<number, ImportProblem[]>> {
  const conflicts = new Map<number, ImportProblem[]>();
  const add = (line: number, code: ErrorCode, message: string) => {
    const known = conflicts.get(line);
    if (known) known.push({ code, message });
    else conflicts.set(line, [{ code, message }]);
  };
  for (const unique of UNIQUE) {
    const found = await unique.find(find, keysOf(lines).map(unique.valueOf));
    const holders = new Map(
      found.flatMap((holder) => unique.valuesOf(holder).map((value) => [value, holder] as const)),
    );
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
  for (const { line, code, message } of await validateCreators(find, lines)) add(line, code, message);
  return conflicts;
}

/** Checks that each creator is there, and that no chain gets too long. */
async function validateCreators(
  find: StoredKeyFinder,
  lines: readonly ImportLine[],
): Promise<(ImportProblem & { line: number })[]> {
  const creators = new Set(keysOf(lines).flatMap(({ createdBy }) => createdBy ?? []));
  const ancestors = await find.findAncestors([...creators]);
  /** How many keys the chain of a key has, by its id. */
  const lengths = new Map<string, number>();
  const lengthOf = (id: string): number | undefined => {
    const known = lengths.get(id) ?? (ancestors.get(id)?.createdBy === null ? 1 : undefined);
    const creator = known === undefined ? ancestors.get(id)?.createdBy : undefined;
    // An ancestor that is not among those found is too far up.
    return creator == null ? known : (lengthOf(creator) ?? MAX_CHAIN_LENGTH) + 1;
  };
  const problems: (ImportProblem & { line: number })[] = [];
  for (const { line, id, key } of lines) {
    const above = key?.createdBy ? lengthOf(key.createdBy) : 0;
    if (above === undefined) problems.push({ line, ...CREATOR_MISSING });
    else if (above >= MAX_CHAIN_LENGTH) problems.push({ line, ...CHAIN_TOO_LONG });
    if (id !== undefined) lengths.set(id, (above ?? 0) + 1);
  }
  return problems;
}

const CREATOR_MISSING: ImportProblem = {
  code: 'NOT_FOUND',
  message: 'No key in the store or on an earlier line has the id in "createdBy". Leave it out, or put that key first.',
};
const CHAIN_TOO_LONG: ImportProblem = {
  code: 'CHAIN_TOO_LONG',
  message: `More than ${MAX_CHAIN_LENGTH} keys would have created one another. Leave "createdBy" out.`,
};

function keysOf(lines: readonly ImportLine[]): StoredKey[] {
  return lines.flatMap(({ key }) => key ?? []);
}
