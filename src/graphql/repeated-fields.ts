import { type DocumentNode, Kind, type SelectionSetNode } from 'graphql';
import { fragmentsOf } from './fragments.ts';
import { limitExceeded } from './limit-exceeded.ts';

/** The most pairs of fields that share a place in the answer. Validation compares each pair, with its arguments. */
export const MAX_REPEATED_PAIRS = 2500;

/**
 * So many pairs without arguments are counted as one: long arguments take that many times longer. Clients that put a
 * document together of the fragments of many components ask for the same fields, mostly without arguments, in each.
 */
const PAIRS_WITHOUT_ARGUMENTS = 5;

/**
 * Counts the fields that are merged into one place in the answer. Call `checkFieldLimits` first: it bounds the number
 * of fields with fragments expanded.
 * @throws GraphQLError LIMIT_EXCEEDED
 */
export function checkRepeatedFields(document: DocumentNode): void {
  const fragments = fragmentsOf(document);
  for (const definition of document.definitions)
    // Validation compares those of a fragment that no operation uses as well.
    if (definition.kind === Kind.OPERATION_DEFINITION || definition.kind === Kind.FRAGMENT_DEFINITION) {
      if (pairsIn([definition.selectionSet]) > MAX_REPEATED_PAIRS)
        throw limitExceeded('pairs of fields with one name in one place', MAX_REPEATED_PAIRS);
    }

  function pairsIn(sets: readonly SelectionSetNode[]): number {
    const fields = new Map<string, { count: number; withArguments: number; sets: SelectionSetNode[] }>();
    const visited = new Set<string>();
    for (const set of sets) collect(set);
    let pairs = 0;
    for (const { count, withArguments, sets: inner } of fields.values()) {
      const costly = pairsOf(withArguments);
      pairs += costly + (pairsOf(count) - costly) / PAIRS_WITHOUT_ARGUMENTS + (inner.length > 0 ? pairsIn(inner) : 0);
    }
    return pairs;

    function collect({ selections }: SelectionSetNode): void {
      for (const selection of selections) {
        if (selection.kind === Kind.FIELD) {
          const name = (selection.alias ?? selection.name).value;
          const field = fields.get(name) ?? { count: 0, withArguments: 0, sets: [] };
          field.count += 1;
          if (selection.arguments?.length) field.withArguments += 1;
          if (selection.selectionSet) field.sets.push(selection.selectionSet);
          fields.set(name, field);
        } else if (selection.kind === Kind.INLINE_FRAGMENT) collect(selection.selectionSet);
        else if (!visited.has(selection.name.value)) {
          visited.add(selection.name.value);
          const fragment = fragments.get(selection.name.value);
          if (fragment) collect(fragment.selectionSet);
        }
      }
    }
  }
}

function pairsOf(count: number): number {
  return (count * (count - 1)) / 2;
}
