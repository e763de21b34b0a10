import { MAX_CHAIN_LENGTH } from '../authorization/chain.ts';
import { tooMany } from '../authorization/policy.ts';
import { statusOf } from '../key/status.ts';
import type { Catalog } from '../permissions/catalog.ts';
import type { KeyFinder } from '../repository.ts';
import type { ImportLine, ImportProblem } from './read-import.ts';

/** What the keys of all lines are checked by, at a time in milliseconds since 1970. */
export interface ImportRules {
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
export async function validateCreators(
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
export async function validateCounts(
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
