import type { Catalog } from '../../keys/permissions/catalog.ts';
import {
  DeclarationError,
  type DeclarationIssue,
  type DeclaredKey,
  readDeclaration,
  assertValidDeclaration,
} from '../../keys/apply/declaration.ts';
import { KeysError } from '../../keys/errors.ts';
import { printable } from '../../keys/text.ts';
import { readText } from '../input/read-text.ts';
import { type PlacedIssue, readYaml } from './yaml-text.ts';

/** How many issues are shown, the first ones of the file; and among how many they are looked for. */
const MAX_SHOWN_ISSUES = 20;
const MAX_PLACED_ISSUES = 1000;

/** A declaration that was read from a file. */
export interface DeclarationFile {
  keys: DeclaredKey[];
  /** An error as it is to be thrown: with the line and column of each issue, where it is about the declaration. */
  located(error: unknown): unknown;
}

/**
 * Reads declared keys from a YAML file, or from stdin by the path `-`.
 * @param check finds what else is wrong with the declared keys
 * @throws KeysError INPUT_INVALID where there is no text; DECLARATION_INVALID with the line and column of each issue
 */
export async function readDeclarationFile(
  path: string,
  catalog: Catalog,
  check: (keys: readonly DeclaredKey[]) => DeclarationIssue[] = () => [],
): Promise<DeclarationFile> {
  const name = path === '-' ? 'stdin' : printable(path, 200);
  const read = await readYaml(await readText(path, name));
  if ('issues' in read) throw invalid(name, read.issues);
  const located = (error: unknown) => {
    if (!(error instanceof DeclarationError)) return error;
    const placed = error.issues
      .slice(0, MAX_PLACED_ISSUES)
      .map((issue) => ({ ...read.placeOf(issue), message: issue.message }));
    return invalid(name, placed, error.issues.length);
  };
  try {
    const keys = readDeclaration(read.value, catalog);
    assertValidDeclaration(check(keys));
    return { keys, located };
  } catch (error) {
    throw located(error);
  }
}

function invalid(name: string, issues: readonly PlacedIssue[], count = issues.length): KeysError {
  const sorted = issues.toSorted((one, other) => one.line - other.line || one.column - other.column);
  const shown = sorted
    .slice(0, MAX_SHOWN_ISSUES)
    .map(({ line, column, message }) => `${name}:${line}:${column}: ${printable(message, 1000)}`);
  if (count > MAX_SHOWN_ISSUES) shown.push(`${count - MAX_SHOWN_ISSUES} more issues follow.`);
  return new KeysError('DECLARATION_INVALID', shown.join('\n'));
}
