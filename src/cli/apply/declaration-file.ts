import type { Catalog } from '../../keys/permissions/catalog.ts';
import {
  DeclarationError,
  type DeclarationFault,
  type DeclaredKey,
  readDeclaration,
  refuseDeclaration,
} from '../../keys/apply/declaration.ts';
import { KeysError } from '../../keys/errors.ts';
import { printable } from '../../keys/text.ts';
import { readText } from '../input/read-text.ts';
import { type PlacedFault, readYaml } from './yaml-text.ts';

/** How many faults are shown, the first ones of the file; and among how many they are looked for. */
const SHOWN_FAULTS = 20;
const PLACED_FAULTS = 1000;

/** A declaration that was read from a file. */
export interface DeclarationFile {
  keys: DeclaredKey[];
  /** An error as it is to be thrown: with the line and column of each fault, where it is about the declaration. */
  located(error: unknown): unknown;
}

/**
 * Reads declared keys from a YAML file, or from stdin by the path `-`.
 * @param check finds what else is wrong with the declared keys
 * @throws KeysError INPUT_INVALID where there is no text; DECLARATION_INVALID with the line and column of each fault
 */
export async function readDeclarationFile(
  path: string,
  catalog: Catalog,
  check: (keys: readonly DeclaredKey[]) => DeclarationFault[] = () => [],
): Promise<DeclarationFile> {
  const name = path === '-' ? 'stdin' : printable(path, 200);
  const read = await readYaml(await readText(path, name));
  if ('faults' in read) throw invalid(name, read.faults);
  const located = (error: unknown) => {
    if (!(error instanceof DeclarationError)) return error;
    const placed = error.faults
      .slice(0, PLACED_FAULTS)
      .map((fault) => ({ ...read.placeOf(fault), message: fault.message }));
    return invalid(name, placed, error.faults.length);
  };
  try {
    const keys = readDeclaration(read.value, catalog);
    refuseDeclaration(check(keys));
    return { keys, located };
  } catch (error) {
    throw located(error);
  }
}

function invalid(name: string, faults: readonly PlacedFault[], count = faults.length): KeysError {
  const sorted = faults.toSorted((one, other) => one.line - other.line || one.column - other.column);
  const shown = sorted
    .slice(0, SHOWN_FAULTS)
    .map(({ line, column, message }) => `${name}:${line}:${column}: ${printable(message, 1000)}`);
  if (count > SHOWN_FAULTS) shown.push(`${count - SHOWN_FAULTS} more faults follow.`);
  return new KeysError('DECLARATION_INVALID', shown.join('\n'));
}
