import type { ApiKey, StoredKey } from '../key/api-key.ts';
import { type ErrorCode, NameTakenError } from '../errors.ts';
import { type ImportRules, validateCounts, validateCreators } from './creators.ts';
import type { ImportLine, ImportProblem, ImportWarning } from './read-import.ts';
import type { KeyFinder } from '../repository.ts';
import { findConfusableNames, warningsOf } from '../changes/confusable-names.ts';
import { OPERATOR } from '../authorization/principal.ts';
import { prefixOf } from '../secret/secret.ts';

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
    const holders = new Map(await unique.findHolders(find, keysOf(lines).map(unique.valueOf)));
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

function keysOf(lines: readonly ImportLine[]): StoredKey[] {
  return lines.flatMap(({ key }) => key ?? []);
}
