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
import { type LocatedIssue, readYaml } from './yaml-text.ts';

/** How many issues are shown: the first ones in the file. */
const MAX_SHOWN_ISSUES = 20;
/** How many issues get a line and column before they are sorted, so that a hopeless file is refused quickly. */
const MAX_LOCATED_ISSUES = 1000;

/** A declaration read from a file. */
export interface DeclarationFile {
  keys: DeclaredKey[];
  /** The error to throw instead: a `DeclarationError` gets lines and columns, any other stays as it is. */
  located(error: unknown): unknown;
}

/**
 * Reads declared keys from a YAML file, or from stdin if the path is `-`.
 * @param check finds further issues in the declared keys
 * @throws KeysError INPUT_INVALID if it can't be read; DECLARATION_INVALID with the line and column of each issue
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
    const issues = error.issues
      .slice(0, MAX_LOCATED_ISSUES)
      .map((issue) => ({ ...read.positionOf(issue), message: issue.message }));
    return invalid(name, issues, error.issues.length);
  };
  try {
    const keys = readDeclaration(read.value, catalog);
    assertValidDeclaration(check(keys));
    return { keys, located };
  } catch (error) {
    throw located(error);
  }
}

function invalid(name: string, issues: readonly LocatedIssue[], count = issues.length): KeysError {
  const sorted = issues.toSorted((one, other) => one.line - other.line || one.column - other.column);
  const shown = sorted
    .slice(0, MAX_SHOWN_ISSUES)
    .map(({ line, column, message }) => `${name}:${line}:${column}: ${printable(message, 1000)}`);
  if (count > MAX_SHOWN_ISSUES) shown.push(`${count - MAX_SHOWN_ISSUES} more not shown.`);
  return new KeysError('DECLARATION_INVALID', shown.join('\n'));
}
