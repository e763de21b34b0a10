import {
  type DocumentNode,
  type FragmentDefinitionNode,
  type FragmentSpreadNode,
  GraphQLError,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import { limitExceeded } from './limit-exceeded.ts';

/** The most fragments in a document. Validation compares each pair. */
export const MAX_FRAGMENTS = 100;
/** The most levels of brackets with fragments expanded. All that walks through a document recurses so deep. */
export const MAX_EXPANDED_LEVELS = 200;

/** The fragments of a document, by their names. */
export function fragmentsOf({ definitions }: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode> {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of definitions)
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  return fragments;
}

/**
 * Bounds how many fragments a document has and how deep they contain one another, before anything follows them. Looks
 * at each fragment once.
 * @throws GraphQLError LIMIT_EXCEEDED, or the first circle of fragments, in the words of graphql-js
 */
export function checkFragments(document: DocumentNode): void {
  const fragments = fragmentsOf(document);
  if (fragments.size === 0) return;
  if (fragments.size > MAX_FRAGMENTS) throw limitExceeded('fragments', MAX_FRAGMENTS);
  const levels = new Map<string, number>();
  /** From an operation or a fragment to the one that is looked at. */
  const path: FragmentSpreadNode[] = [];
  for (const definition of document.definitions)
    if (definition.kind === Kind.OPERATION_DEFINITION || definition.kind === Kind.FRAGMENT_DEFINITION)
      levelsOf(definition.selectionSet);

  function levelsOf(set: SelectionSetNode): number {
    let deepest = 0;
    const spreads: { spread: FragmentSpreadNode; level: number }[] = [];
    collect(set, 1);
    for (const { spread, level } of spreads) deepest = Math.max(deepest, level + levelsOfFragment(spread));
    if (deepest > MAX_EXPANDED_LEVELS)
      throw limitExceeded('levels of nesting, with fragments expanded', MAX_EXPANDED_LEVELS);
    return deepest;

    function collect({ selections }: SelectionSetNode, level: number): void {
      deepest = Math.max(deepest, level);
      for (const selection of selections)
        if (selection.kind === Kind.FRAGMENT_SPREAD) spreads.push({ spread: selection, level });
        else if (selection.selectionSet) collect(selection.selectionSet, level + 1);
    }
  }

  function levelsOfFragment(spread: FragmentSpreadNode): number {
    const name = spread.name.value;
    const fragment = fragments.get(name);
    const known = fragment ? levels.get(name) : 0;
    if (known !== undefined) return known;
    const start = path.findIndex((other) => other.name.value === name);
    if (start >= 0) throw withinItself([...path.slice(start + 1), spread]);
    path.push(spread);
    const count = levelsOf(fragment!.selectionSet);
    path.pop();
    levels.set(name, count);
    return count;
  }
}

/** @param circle the spreads that lead from a fragment back to it */
function withinItself(circle: readonly FragmentSpreadNode[]): GraphQLError {
  const [name, ...others] = circle.map((spread) => `"${spread.name.value}"`).toReversed();
  const via = others.length > 0 ? ` via ${others.toReversed().join(', ')}` : '';
  return new GraphQLError(`Cannot spread fragment ${name} within itself${via}.`, { nodes: circle });
}
