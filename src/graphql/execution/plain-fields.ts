import type { AnswerLength } from '../budget/answer.ts';
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
  readonly #length: AnswerLength;
  /** What was taken over. */
  results: Record<string, unknown> = {};
  /** How many fields these are. */
  count = 0;
  /** What the next one has given, where it was read already. */
  read: Read | undefined = undefined;

  constructor(length: AnswerLength) {
    this.#length = length;
  }

  /** The results if these are all fields; otherwise the others are still to be executed. */
  takeOver(fields: readonly SelectedField[], source: unknown): Record<string, unknown> | undefined {
    const results: Record<string, unknown> = {};
    this.results = results;
    this.read = undefined;
    this.count = 0;
    if (typeof source !== 'object' || source === null) return fields.length === 0 ? results : undefined;
    let characters = 0;
    let index = 0;
    try {
      for (; index < fields.length; index += 1) {
        const { key, name, plain, typename } = fields[index]!;
        if (plain === undefined) break;
        const value = typename ?? (source as Record<string, unknown>)[name];
        if (!serializedAsItIs(plain, value)) {
          this.read = { value };
          break;
        }
        characters += key.length + (typeof value === 'string' ? value.length + 5 : 7);
        results[key] = value;
      }
    } catch (thrown) {
      this.read = { thrown };
    }
    this.count = index;
    this.#length.add(characters);
    return index === fields.length ? results : undefined;
  }
}
