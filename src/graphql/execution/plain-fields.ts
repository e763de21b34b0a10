import { serializedAsItIs } from './leaf-values.ts';
import type { SelectedField } from './selection.ts';

/** What reading a property has given: it is read once, whatever comes of it. */
export type Read = { readonly value: unknown } | { readonly thrown: unknown };

/** The value that was read. @throws what its getter has thrown */
export function valueOf(read: Read): unknown {
  if ('thrown' in read) throw read.thrown;
  return read.value;
}

/**
 * Takes over the fields with which a selection begins, as long as they are properties that scalars of GraphQL serialize
 * as they are, or `__typename`. The items of most lists have no others: one loop for these is faster than to execute
 * each field.
 */
export class PlainFields {
  /** How many were taken over. */
  count = 0;
  /** How many characters of the answer they are. */
  characters = 0;
  /** What the next one has given, where it was read already. */
  read: Read | undefined = undefined;

  takeOver(fields: readonly SelectedField[], source: unknown, results: Record<string, unknown>): void {
    this.read = undefined;
    this.count = 0;
    this.characters = 0;
    if (typeof source !== 'object' || source === null) return;
    let characters = 0;
    try {
      for (let index = 0; index < fields.length; index += 1) {
        const { key, name, plain, typename } = fields[index]!;
        if (plain === undefined) break;
        const value = typename ?? (source as Record<string, unknown>)[name];
        if (!serializedAsItIs(plain, value)) {
          this.read = { value };
          break;
        }
        characters += key.length + (typeof value === 'string' ? value.length + 5 : 7);
        results[key] = value;
        this.count = index + 1;
      }
    } catch (thrown) {
      this.read = { thrown };
    }
    this.characters = characters;
  }
}
