import {
  BREAK,
  type DocumentNode,
  type FragmentDefinitionNode,
  type FragmentSpreadNode,
  getOperationAST,
  GraphQLError,
  Kind,
  Lexer,
  OperationTypeNode,
  parse,
  type SelectionSetNode,
  Source,
  TokenKind,
  visit,
} from 'graphql';

/** Limits of a document. The introspection query of common tools has a depth of 15 and about 230 fields. */
export const DOCUMENT_LIMITS = { tokens: 5000, nesting: 100, nameLength: 256 };

/**
 * Parses a document after checking its size, so that it cannot exhaust the parser's stack or the validator's time.
 * @throws GraphQLError if it has a syntax error, exceeds a limit, or has no such operation
 */
export function readDocument(text: string, operationName: string | null): DocumentNode {
  const source = new Source(text, 'GraphQL request');
  const document = withoutStackTrace(() => {
    checkSize(source);
    return parse(source);
  });
  withoutStackTrace(() => checkFragments(document));
  checkFieldLimits(document);
  checkRepeatedFields(document);
  const operation = getOperationAST(document, operationName);
  if (operation?.operation === OperationTypeNode.SUBSCRIPTION) throw badRequest('Subscriptions are not supported.');
  if (!operation && document.definitions.some(({ kind }) => kind === Kind.OPERATION_DEFINITION)) {
    throw badRequest(
      operationName === null
        ? 'The document has several operations: pass operationName.'
        : 'The document has no operation of that name.',
    );
  }
  return document;
}

export function isMutation(document: DocumentNode, operationName: string | null): boolean {
  return getOperationAST(document, operationName)?.operation === OperationTypeNode.MUTATION;
}

/** The name of the operation to execute; undefined if it has none. */
export function operationNameIn(document: DocumentNode, operationName: string | null): string | undefined {
  return getOperationAST(document, operationName)?.name?.value;
}

function checkSize(source: Source): void {
  const lexer = new Lexer(source);
  let tokens = 0;
  let nesting = 0;
  for (let token = lexer.advance(); token.kind !== TokenKind.EOF; token = lexer.advance()) {
    tokens += 1;
    if (token.kind === TokenKind.BRACE_L || token.kind === TokenKind.BRACKET_L || token.kind === TokenKind.PAREN_L)
      nesting += 1;
    else if (token.kind === TokenKind.BRACE_R || token.kind === TokenKind.BRACKET_R || token.kind === TokenKind.PAREN_R)
      nesting -= 1;
    // Limited, since each error may repeat the name.
    if (token.kind === TokenKind.NAME && token.end - token.start > DOCUMENT_LIMITS.nameLength)
      throw limitExceeded('characters in a name', DOCUMENT_LIMITS.nameLength);
    if (tokens > DOCUMENT_LIMITS.tokens) throw limitExceeded('tokens', DOCUMENT_LIMITS.tokens);
    if (nesting > DOCUMENT_LIMITS.nesting) throw limitExceeded('levels of nesting', DOCUMENT_LIMITS.nesting);
  }
}

function badRequest(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_REQUEST' } });
}

/** The most fragments in a document. Validation compares each pair. */
export const MAX_FRAGMENTS = 100;
/** The most levels of brackets, with fragments expanded. Code that walks through a document recurses as deep. */
export const MAX_EXPANDED_LEVELS = 200;

/** The fragments of a document, by their names. */
export function fragmentsOf({ definitions }: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode> {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of definitions)
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  return fragments;
}

/**
 * Limits the number of fragments and their nesting, before any code follows them. Looks at each fragment once.
 * @throws GraphQLError LIMIT_EXCEEDED, or graphql-js's error for the first cycle of fragments
 */
function checkFragments(document: DocumentNode): void {
  const fragments = fragmentsOf(document);
  if (fragments.size === 0) return;
  if (fragments.size > MAX_FRAGMENTS) throw limitExceeded('fragments', MAX_FRAGMENTS);
  const levels = new Map<string, number>();
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

/** @param circle the spreads that lead from a fragment back to itself */
function withinItself(circle: readonly FragmentSpreadNode[]): GraphQLError {
  const [name, ...others] = circle.map((spread) => `"${spread.name.value}"`).toReversed();
  const via = others.length > 0 ? ` via ${others.toReversed().join(', ')}` : '';
  return new GraphQLError(`Cannot spread fragment ${name} within itself${via}.`, { nodes: circle });
}

/** Limits of an operation, with fragments expanded. */
export const FIELD_LIMITS = { depth: 20, fields: 1000, aliases: 100, directives: 100 };

/** The size of a selection with its fragments expanded. */
type Size = typeof FIELD_LIMITS;

const NOTHING: Size = { depth: 0, fields: 0, aliases: 0, directives: 0 };

/**
 * Measures the operations of a document with fragments expanded. Each fragment is measured once, so that fragments that
 * double one another take no longer. Call `checkFragments` first, which refuses cycles.
 * @throws GraphQLError LIMIT_EXCEEDED
 */
function checkFieldLimits(document: DocumentNode): void {
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

/** The most pairs of fields with the same place in the answer. Validation compares each pair, with its arguments. */
export const MAX_REPEATED_PAIRS = 2500;

/**
 * How many pairs without arguments count as one, since long arguments take that many times longer. Clients that combine
 * the fragments of many components request the same fields in each, mostly without arguments.
 */
const PAIRS_WITHOUT_ARGUMENTS = 5;

/**
 * Counts the fields that are merged into one place in the answer. Call `checkFieldLimits` first, which limits the
 * number of fields with fragments expanded.
 * @throws GraphQLError LIMIT_EXCEEDED
 */
function checkRepeatedFields(document: DocumentNode): void {
  const fragments = fragmentsOf(document);
  for (const definition of document.definitions)
    // Validation also compares the fields of fragments that no operation uses.
    if (definition.kind === Kind.OPERATION_DEFINITION || definition.kind === Kind.FRAGMENT_DEFINITION) {
      if (pairsIn([definition.selectionSet]) > MAX_REPEATED_PAIRS)
        throw limitExceeded('pairs of fields with the same name in the same place', MAX_REPEATED_PAIRS);
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

function limitExceeded(what: string, limit: number): GraphQLError {
  return new GraphQLError(`The document has more than ${limit} ${what}, which is the limit.`, {
    extensions: { code: 'LIMIT_EXCEEDED' },
  });
}

/**
 * Makes an error without a stack trace, which would cost more than the rest of a refusal. For errors whose message says
 * enough, and for those that wrap another.
 */
export function withoutStackTrace<Value>(make: () => Value): Value {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return make();
  } finally {
    Error.stackTraceLimit = limit;
  }
}

/** The fields that reveal the schema. `__typename` reveals only what the client has requested. */
const FIELDS: ReadonlySet<string> = new Set(['__schema', '__type']);
/** A quick test for documents with one of these fields, whose names cannot be escaped. */
const POSSIBLY = /__(?:schema|type)(?!\w)/;

/** True if a document requests the schema anywhere, under any alias. */
export function introspects(document: DocumentNode): boolean {
  if (!POSSIBLY.test(document.loc?.source.body ?? '__schema')) return false;
  let found = false;
  visit(document, {
    Field: ({ name }) => {
      found ||= FIELDS.has(name.value);
      return found ? BREAK : undefined;
    },
  });
  return found;
}
