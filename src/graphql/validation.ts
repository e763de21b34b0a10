import {
  type ASTNode,
  type ASTVisitor,
  type DocumentNode,
  getEnterLeaveForKind,
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

/** The rules that look at parts of a kind, by their indexes. */
type RulesByKind = ReadonlyMap<string, readonly number[]>;

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
      withoutStackTrace(() => new Pass(this.#schema, document, this.#rules).walk(document, undefined, []));
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
  const looksAt = (visitor: ASTVisitor, kind: Kind) => {
    const { enter, leave } = getEnterLeaveForKind(visitor, kind);
    return enter !== undefined || leave !== undefined;
  };
  return new Map(
    Object.values(Kind).map((kind) => [
      kind,
      visitors.flatMap((visitor, index) => (looksAt(visitor, kind) ? index : [])),
    ]),
  );
}

/** What rules ask. Where a text has no "$", they need not walk through all of it to know that it has no variables. */
class RuleContext extends ValidationContext {
  readonly #hasVariables: boolean;

  constructor(...args: ConstructorParameters<typeof ValidationContext>) {
    super(...args);
    this.#hasVariables = this.getDocument().loc?.source.body.includes('$') ?? true;
  }

  override getVariableUsages(
    node: Parameters<ValidationContext['getVariableUsages']>[0],
  ): ReturnType<ValidationContext['getVariableUsages']> {
    return this.#hasVariables ? super.getVariableUsages(node) : [];
  }
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

  constructor(schema: GraphQLSchema, document: DocumentNode, rules: RulesByKind) {
    this.#rules = rules;
    this.#typeInfo = new TypeInfo(schema);
    this.#context = new RuleContext(schema, document, this.#typeInfo, () => {
      throw INVALID;
    });
  }

  /** @param ancestors of the parent, from the document on, as rules get them */
  walk(node: ASTNode, parent: Ancestor | undefined, ancestors: readonly Ancestor[]): void {
    const { kind } = node;
    const rules = this.#rules.get(kind)!;
    this.#typeInfo.enter(node);
    for (const index of rules) {
      if (this.#skipped[index] !== undefined) continue;
      const visitor = (this.#visitors[index] ??= specifiedRules[index]!(this.#context));
      const enter = getEnterLeaveForKind(visitor, kind).enter as Visit | undefined;
      if (enter?.call(visitor, node, undefined, parent, [], ancestors) === false) this.#skipped[index] = node;
    }
    this.#walkParts(node, parent === undefined ? ancestors : [...ancestors, parent]);
    for (const index of rules) {
      if (this.#skipped[index] === undefined) {
        const visitor = this.#visitors[index]!;
        const leave = getEnterLeaveForKind(visitor, kind).leave as Visit | undefined;
        leave?.call(visitor, node, undefined, parent, [], ancestors);
      } else if (this.#skipped[index] === node) this.#skipped[index] = undefined;
    }
    this.#typeInfo.leave(node);
  }

  #walkParts(node: ASTNode, ancestors: readonly Ancestor[]): void {
    for (const name of PARTS[node.kind] ?? []) {
      const part = (node as unknown as Readonly<Record<string, Ancestor | undefined>>)[name];
      if (part === undefined) continue;
      if ('kind' in part) this.walk(part, node, ancestors);
      else if (part.length > 0) {
        const inner = [...ancestors, node];
        for (const item of part) this.walk(item, part, inner);
      }
    }
  }
}
