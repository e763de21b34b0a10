import type { Catalog } from '../../keys/permissions/catalog.ts';
import {
  DeclarationError,
  type DeclaredKey,
  readDeclaration,
  assertValidDeclaration,
} from '../../keys/apply/declaration.ts';
import type { DocumentIssue } from '../../keys/document.ts';
import { KeysError } from '../../keys/errors.ts';
import { printable } from '../../keys/text.ts';
import { readText } from '../input/input.ts';
import { describeIssues, locatedText } from '../../yaml/located-issues.ts';
import { readYaml } from '../../yaml/read-yaml.ts';

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
  check: (keys: readonly DeclaredKey[]) => DocumentIssue[] = () => [],
): Promise<DeclarationFile> {
  const name = path === '-' ? 'stdin' : printable(path, 200);
  const read = await readYaml(await readText(path, name));
  if ('issues' in read) throw new KeysError('DECLARATION_INVALID', locatedText(name, read.issues));
  const located = (error: unknown) => {
    if (!(error instanceof DeclarationError)) return error;
    return new KeysError('DECLARATION_INVALID', describeIssues(name, error.issues, read.positionOf));
  };
  try {
    const keys = readDeclaration(read.value, catalog);
    assertValidDeclaration(check(keys));
    return { keys, located };
  } catch (error) {
    throw located(error);
  }
}
