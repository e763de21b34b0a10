import { type DocumentNode, Kind, type SelectionSetNode } from 'graphql';
import { fragmentsOf } from './fragments.ts';
import { limitExceeded } from './limit-exceeded.ts';

/** Limits of an operation, with fragments expanded. */
export const FIELD_LIMITS = { depth: 20, fields: 1000, aliases: 100, directives: 100 };

/** The size of a selection with its fragments expanded. */
interface Size {
  depth: number;
  fields: number;
  aliases: number;
  directives: number;
}

const NOTHING: Size = { depth: 0, fields: 0, aliases: 0, directives: 0 };

/**
 * Measures the operations of a document with fragments expanded. Each fragment is measured once, so that fragments
 * which double one another take no longer. Call `checkFragments` first: it refuses circles.
 * @throws GraphQLError LIMIT_EXCEEDED
 */
export function checkFieldLimits(document: DocumentNode): void {
  const fragments = fragmentsOf(document);
  const sizes = new Map<string, Size>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION || definition.kind === Kind.FRAGMENT_DEFINITION)
      check(sizeOf(definition.selectionSet));
  }

  function sizeOf(set: SelectionSetNode): Size {
    return set.selections.reduce<Size>((total, selection) => {
      const directives = selection.directives?.length ?? 0;
      if (selection.kind === Kind.FRAGMENT_SPREAD)
        return add(total, sizeOfFragment(selection.name.value), { ...NOTHING, directives });
      const inner = selection.selectionSet ? sizeOf(selection.selectionSet) : NOTHING;
      if (selection.kind === Kind.INLINE_FRAGMENT) return add(total, inner, { ...NOTHING, directives });
      const itself = { depth: inner.depth + 1, fields: 1, aliases: selection.alias ? 1 : 0, directives };
      return add(total, inner, itself);
    }, NOTHING);
  }

  function sizeOfFragment(name: string): Size {
    const known = sizes.get(name);
    if (known) return known;
    const fragment = fragments.get(name);
    const size = fragment ? sizeOf(fragment.selectionSet) : NOTHING;
    sizes.set(name, size);
    return size;
  }
}

function add(...sizes: Size[]): Size {
  return sizes.reduce((total, size) => ({
    depth: Math.max(total.depth, size.depth),
    fields: total.fields + size.fields,
    aliases: total.aliases + size.aliases,
    directives: total.directives + size.directives,
  }));
}

function check(size: Size): void {
  if (size.depth > FIELD_LIMITS.depth) throw limitExceeded('levels of fields', FIELD_LIMITS.depth);
  if (size.fields > FIELD_LIMITS.fields) throw limitExceeded('fields, with fragments expanded', FIELD_LIMITS.fields);
  if (size.aliases > FIELD_LIMITS.aliases) throw limitExceeded('aliases', FIELD_LIMITS.aliases);
  if (size.directives > FIELD_LIMITS.directives) throw limitExceeded('directives', FIELD_LIMITS.directives);
}
