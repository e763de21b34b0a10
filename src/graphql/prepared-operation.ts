import {
  type DocumentNode,
  type ExecutionResult,
  type FieldNode,
  getOperationAST,
  getVariableValues,
  GraphQLIncludeDirective,
  type GraphQLSchema,
  GraphQLSkipDirective,
  Kind,
  type OperationDefinitionNode,
  visit,
} from 'graphql';
import type { Amount } from './budget/amount.ts';
import type { BudgetedContext } from './context.ts';
import { isMutation } from './document.ts';
import { Execution } from './execution/execution.ts';
import type { ExecutedOperation } from './execution/resolution.ts';
import type { Eventual } from './execution/results.ts';
import { Selection } from './execution/selection.ts';
import { fragmentsOf } from './fragments.ts';
import { introspects } from './introspection.ts';

/** The most combinations of conditions for which the selected fields are kept. */
const MAX_PLANS = 16;

/** Each holds the whole value. */
const MAX_VARIABLE_ERRORS = 10;

/** A valid operation, ready to be executed with any variables: nothing of its document is looked at twice. */
export class PreparedOperation {
  /** See `costOf`. */
  readonly cost: Amount;
  /** Undefined if it has none. */
  readonly name: string | undefined;
  readonly isMutation: boolean;
  /** See `introspects`. */
  readonly introspects: boolean;
  readonly #schema: GraphQLSchema;
  readonly #document: DocumentNode;
  readonly #operation: OperationDefinitionNode;
  /** The variables that decide by `@include` and `@skip` which fields are selected. */
  readonly #conditions: readonly string[];
  /** By the values of the conditions. */
  readonly #plans = new Map<string, ExecutedOperation>();

  constructor(schema: GraphQLSchema, document: DocumentNode, operationName: string | null, cost: Amount) {
    this.#schema = schema;
    this.#document = document;
    this.#operation = getOperationAST(document, operationName)!;
    this.#conditions = conditionsIn(document);
    this.cost = cost;
    this.name = this.#operation.name?.value;
    this.isMutation = isMutation(document, operationName);
    this.introspects = introspects(document);
  }

  /** How many combinations of conditions it may keep the selected fields of. */
  get maxPlans(): number {
    return Math.min(MAX_PLANS, 2 ** this.#conditions.length);
  }

  /** Executes the operation. @throws GraphQLError COST_EXCEEDED if the answer gets too long */
  execute(context: BudgetedContext, variables: Record<string, unknown> | null): Eventual<ExecutionResult> {
    const { variableDefinitions = [] } = this.#operation;
    if (variableDefinitions.length === 0) return new Execution(this.#planFor({}), context, {}).run();
    const { errors, coerced } = getVariableValues(this.#schema, variableDefinitions, variables ?? {}, {
      maxErrors: MAX_VARIABLE_ERRORS,
    });
    if (errors) return { errors };
    return new Execution(this.#planFor(coerced), context, coerced).run();
  }

  #planFor(variables: Record<string, unknown>): ExecutedOperation {
    const key = this.#conditions.map((name) => String(variables[name])).join();
    const known = this.#plans.get(key);
    if (known) return known;
    const plan = this.#plan(variables);
    if (this.#plans.size >= this.maxPlans) this.#plans.clear();
    this.#plans.set(key, plan);
    return plan;
  }

  #plan(variables: Record<string, unknown>): ExecutedOperation {
    const operation = this.#operation;
    const scope = {
      schema: this.#schema,
      fragments: Object.fromEntries(fragmentsOf(this.#document)),
      conditions: Object.fromEntries(
        this.#conditions.flatMap((name) => (Object.hasOwn(variables, name) ? [[name, variables[name]]] : [])),
      ),
    };
    const root = { kind: Kind.FIELD, selectionSet: operation.selectionSet } as FieldNode;
    return {
      scope,
      operation,
      selection: new Selection(scope, [root]),
      rootType: this.#schema.getRootType(operation.operation)!,
    };
  }
}

function conditionsIn(document: DocumentNode): string[] {
  // To look through all of it takes longer than to prepare the rest.
  if (!document.loc?.source.body.includes('@')) return [];
  const names = new Set<string>();
  visit(document, {
    Directive: ({ name, arguments: given = [] }) => {
      if (name.value !== GraphQLIncludeDirective.name && name.value !== GraphQLSkipDirective.name) return;
      for (const { value } of given) if (value.kind === Kind.VARIABLE) names.add(value.name.value);
    },
  });
  return [...names];
}
