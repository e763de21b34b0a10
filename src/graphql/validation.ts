import {
  type ASTNode,
  type ASTVisitor,
  type DocumentNode,
  type GraphQLSchema,
  Kind,
  parse,
  specifiedRules,
  TypeInfo,
  ValidationContext,
} from 'graphql';
import { withoutStackTrace } from '../keys/errors.ts';

/** The parts of a document that rules look at, by the kind of what they are part of. */
const PARTS: { readonly [kind: string]: readonly string[] | undefined } = {
  [Kind.DOCUMENT]: ['definitions'],
  [Kind.OPERATION_DEFINITION]: ['variableDefinitions', 'directives', 'selectionSet'],
  [Kind.FRAGMENT_DEFINITION]: ['variableDefinitions', 'typeCondition', 'directives', 'selectionSet'],
  [Kind.VARIABLE_DEFINITION]: ['variable', 'type', 'defaultValue', 'directives'],
  [Kind.SELECTION_SET]: ['selections'],
  [Kind.FIELD]: ['arguments', 'directives', 'selectionSet'],
  [Kind.FRAGMENT_SPREAD]: ['directives'],
  [Kind.INLINE_FRAGMENT]: ['typeCondition', 'directives', 'selectionSet'],
  [Kind.DIRECTIVE]: ['arguments'],
  [Kind.ARGUMENT]: ['value'],
  [Kind.LIST]: ['values'],
  [Kind.OBJECT]: ['fields'],
  [Kind.OBJECT_FIELD]: ['value'],
  [Kind.LIST_TYPE]: ['type'],
  [Kind.NON_NULL_TYPE]: ['type'],
};

/** A part of a document, or a list of parts. */
type Ancestor = ASTNode | readonly ASTNode[];
type Visit = (
  this: ASTVisitor,
  node: ASTNode,
  key: undefined,
  parent: Ancestor | undefined,
  path: readonly [],
  ancestors: readonly Ancestor[],
) => unknown;

/** A visitor, which has what it does for one kind, or for all of them. */
type VisitsByKind = { readonly enter?: Visit; readonly leave?: Visit } & {
  readonly [kind in Kind]?: Visit | { readonly enter?: Visit; readonly leave?: Visit };
};

/** The rules that look at parts of a kind, before what is in them and after it, by their indexes. */
type RulesByKind = ReadonlyMap<string, { readonly entering: readonly number[]; readonly leaving: readonly number[] }>;

/**
 * Validates documents (GraphQL, "Validation") by all rules of graphql-js, as its `validate` does, but tells no errors.
 * That one prepares each rule for each kind of part, of any document; here, each document only takes the rules for the
 * kinds that are in it, which is less than half of the work for a small one.
 */
export class Validation {
  readonly #schema: GraphQLSchema;
  readonly #rules: RulesByKind;

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
    this.#rules = rulesByKind(schema);
  }

  /** Whether a document is valid. Call `checkFieldLimits` and `checkRepeatedFields` first: they bound what it takes. */
  isValid(document: DocumentNode): boolean {
    try {
      withoutStackTrace(() => new Pass(this.#schema, document, this.#rules).walk(document, undefined));
      return true;
    } catch (error) {
      if (error === INVALID || isAborted(error)) return false;
      throw error;
    }
  }
}

/** Is thrown by the first error. */
const INVALID = new Error('The document is not valid.');

/** Whether graphql-js has stopped because fragments refer to one another too often, which it reports as an error. */
function isAborted(error: unknown): boolean {
  return error instanceof Error && error.name === 'GraphQLError';
}

/** Each rule is asked what it looks at. It says the same for all documents. */
function rulesByKind(schema: GraphQLSchema): RulesByKind {
  const document = parse('{ __typename }');
  const context = new ValidationContext(schema, document, new TypeInfo(schema), () => {});
  const visitors = specifiedRules.map((rule) => rule(context));
  const rulesThat = (visit: typeof enterOf, kind: Kind) =>
    visitors.flatMap((visitor, index) => (visit(visitor, kind) ? index : []));
  return new Map(
    Object.values(Kind).map((kind) => [
      kind,
      { entering: rulesThat(enterOf, kind), leaving: rulesThat(leaveOf, kind) },
    ]),
  );
}

/** Like `getEnterLeaveForKind` of graphql-js, which makes an object each time. */
function enterOf(visitor: ASTVisitor, kind: Kind): Visit | undefined {
  const own = (visitor as VisitsByKind)[kind];
  return typeof own === 'object' ? own.enter : (own ?? (visitor as VisitsByKind).enter);
}

function leaveOf(visitor: ASTVisitor, kind: Kind): Visit | undefined {
  const own = (visitor as VisitsByKind)[kind];
  return own === undefined ? (visitor as VisitsByKind).leave : typeof own === 'object' ? own.leave : undefined;
}

/** What rules ask. A part whose text has no "$" need not be walked through to know that it has no variables. */
class RuleContext extends ValidationContext {
  override getVariableUsages(
    node: Parameters<ValidationContext['getVariableUsages']>[0],
  ): ReturnType<ValidationContext['getVariableUsages']> {
    return mayHaveVariables(node) ? super.getVariableUsages(node) : [];
  }
}

function mayHaveVariables({ loc }: ASTNode): boolean {
  if (!loc) return true;
  const at = loc.source.body.indexOf('$', loc.start);
  return at !== -1 && at < loc.end;
}

/** One document, which all rules look at together. */
class Pass {
  readonly #rules: RulesByKind;
  readonly #typeInfo: TypeInfo;
  readonly #context: RuleContext;
  /** By the indexes of their rules. Each is made when it is needed first. */
  readonly #visitors: (ASTVisitor | undefined)[] = [];
  /** What rules do not look into, by their indexes. */
  readonly #skipped: (ASTNode | undefined)[] = [];
  /** From the document on, without the parent. Rules get it as it is at the moment, as they do from graphql-js. */
  readonly #ancestors: Ancestor[] = [];

  constructor(schema: GraphQLSchema, document: DocumentNode, rules: RulesByKind) {
    this.#rules = rules;
    this.#typeInfo = new TypeInfo(schema);
    this.#context = new RuleContext(schema, document, this.#typeInfo, () => {
      throw INVALID;
    });
  }

  walk(node: ASTNode, parent: Ancestor | undefined): void {
    const { kind } = node;
    const { entering, leaving } = this.#rules.get(kind)!;
    const ancestors = this.#ancestors;
    let skipping: number[] | undefined;
    this.#typeInfo.enter(node);
    for (const index of entering) {
      if (this.#skipped[index] !== undefined) continue;
      const visitor = (this.#visitors[index] ??= specifiedRules[index]!(this.#context));
      if (enterOf(visitor, kind)?.call(visitor, node, undefined, parent, [], ancestors) !== false) continue;
      this.#skipped[index] = node;
      (skipping ??= []).push(index);
    }
    if (parent !== undefined) ancestors.push(parent);
    this.#walkParts(node);
    if (parent !== undefined) ancestors.pop();
    for (const index of leaving) {
      if (this.#skipped[index] !== undefined) continue;
      const visitor = (this.#visitors[index] ??= specifiedRules[index]!(this.#context));
      leaveOf(visitor, kind)?.call(visitor, node, undefined, parent, [], ancestors);
    }
    if (skipping) for (const index of skipping) this.#skipped[index] = undefined;
    this.#typeInfo.leave(node);
  }

  #walkParts(node: ASTNode): void {
    for (const name of PARTS[node.kind] ?? []) {
      const part = (node as unknown as Readonly<Record<string, Ancestor | undefined>>)[name];
      if (part === undefined) continue;
      if ('kind' in part) this.walk(part, node);
      else if (part.length > 0) {
        this.#ancestors.push(node);
        for (const item of part) this.walk(item, part);
        this.#ancestors.pop();
      }
    }
  }
}
