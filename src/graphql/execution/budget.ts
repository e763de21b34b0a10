import { setImmediate } from 'node:timers/promises';
import {
  type ArgumentNode,
  defaultFieldResolver,
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  getNamedType,
  getNullableType,
  getOperationAST,
  GraphQLError,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  isEnumType,
  isListType,
  isObjectType,
  Kind,
  SchemaMetaFieldDef,
  type SelectionSetNode,
  TypeMetaFieldDef,
  type ValueNode,
} from 'graphql';
import { fragmentsOf } from './document.ts';

/** The assumed size of a list without further information. */
const DEFAULT_SIZE = 10;

/**
 * The cost of a selection, split into everything except its lists without a size of their own, and one item of each of
 * these lists.
 */
interface SelectionCost {
  fixed: Amount;
  perItem: Amount;
}

const NOTHING: SelectionCost = { fixed: 0, perItem: 0 };

/**
 * The cost of an operation before it runs: its fields, times the sizes of the lists around them. A function of the
 * variables if the cost depends on them. The document need not be valid. Each fragment is measured once.
 */
export function costOf(schema: GraphQLSchema, document: DocumentNode, operationName: string | null): Amount {
  const operation = getOperationAST(document, operationName);
  const root = operation && schema.getRootType(operation.operation);
  if (!root) return 0;
  const fragments = fragmentsOf(document);
  const measured = new Map<string, SelectionCost>();
  const defaults = new Map<string, ValueNode | undefined>(
    operation.variableDefinitions?.map(({ variable, defaultValue }) => [variable.name.value, defaultValue]),
  );
  return total(costOfSelection(operation.selectionSet, root));

  function costOfSelection({ selections }: SelectionSetNode, type: GraphQLNamedType | undefined): SelectionCost {
    return selections.reduce<SelectionCost>((sum, selection) => {
      const cost =
        selection.kind === Kind.FIELD
          ? costOfNode(selection, type)
          : selection.kind === Kind.FRAGMENT_SPREAD
            ? costOfFragment(selection.name.value)
            : costOfSelection(selection.selectionSet, typeNamed(selection.typeCondition?.name.value) ?? type);
      return { fixed: plus(sum.fixed, cost.fixed), perItem: plus(sum.perItem, cost.perItem) };
    }, NOTHING);
  }

  function costOfFragment(name: string): SelectionCost {
    const known = measured.get(name);
    if (known) return known;
    const fragment = fragments.get(name);
    const cost = fragment
      ? costOfSelection(fragment.selectionSet, typeNamed(fragment.typeCondition.name.value))
      : NOTHING;
    measured.set(name, cost);
    return cost;
  }

  function costOfNode(node: FieldNode, type: GraphQLNamedType | undefined): SelectionCost {
    const field = fieldOf(type, node.name.value);
    if (!field) return { fixed: 1, perItem: 0 };
    const inner = node.selectionSet ? costOfSelection(node.selectionSet, getNamedType(field.type)) : NOTHING;
    const { weight, size, page, argumentWeights } = costOfField(type!.name, field);
    const args = costOfArguments(field, node.arguments ?? [], { argumentWeights, page });
    const isList = isListType(getNullableType(field.type));
    if (page) {
      const items = pageSize(page, field, node.arguments ?? []);
      const each = isList ? plus(1, total(inner)) : inner.perItem;
      const once = isList ? 0 : inner.fixed;
      return { fixed: plus(args, plus(once, times(items, plus(weight, each)))), perItem: 0 };
    }
    const once = plus(weight, args);
    const each = total(inner);
    if (size !== undefined) return { fixed: plus(once, times(size, plus(1, each))), perItem: 0 };
    return isList ? { fixed: once, perItem: plus(1, each) } : { fixed: plus(once, each), perItem: 0 };
  }

  /** The size of a page: the first slicing argument that is given, up to the largest page. */
  function pageSize(
    page: NonNullable<FieldCost['page']>,
    field: GraphQLField<unknown, unknown>,
    given: readonly ArgumentNode[],
  ): Amount {
    for (const name of page.arguments) {
      const definition = field.args.find((arg) => arg.name === name);
      const fallback = typeof definition?.defaultValue === 'number' ? definition.defaultValue : page.largest;
      const node = given.find((argument) => argument.name.value === name)?.value;
      const sizeOf = (value: unknown) =>
        Math.min(Math.max(typeof value === 'number' ? value : fallback, 0), page.largest);
      if (node?.kind === Kind.VARIABLE) return (variables) => sizeOf(variableOf(node.name.value, variables));
      if (node || definition?.defaultValue !== undefined) return sizeOf(node && plainValue(node));
    }
    return page.largest;
  }

  /** The costs of a field's arguments: the costliest of its search arguments, and all items of its other lists. */
  function costOfArguments(
    field: GraphQLField<unknown, unknown>,
    given: readonly ArgumentNode[],
    { argumentWeights, page }: Pick<FieldCost, 'argumentWeights' | 'page'>,
  ): Amount {
    const weights: number[] = [0];
    let items: Amount = 0;
    for (const { name, value } of given) {
      const weight = argumentWeights.get(name.value) ?? 0;
      const isList = isListType(getNullableType(field.args.find((arg) => arg.name === name.value)?.type));
      const isEach = isList && !page;
      if (!isEach && value.kind !== Kind.NULL) weights.push(weight);
      items = plus(items, times(Math.max(1, isEach ? weight : 1), itemsIn(value)));
    }
    return plus(Math.max(...weights), items);
  }

  function itemsIn(value: ValueNode): Amount {
    if (value.kind === Kind.VARIABLE) return (variables) => countItems(variableOf(value.name.value, variables));
    if (value.kind === Kind.LIST)
      return value.values.reduce<Amount>((sum, item) => plus(sum, itemsIn(item)), value.values.length);
    if (value.kind === Kind.STRING) return textCost(value.value);
    if (value.kind === Kind.OBJECT)
      return value.fields.reduce<Amount>((sum, field) => plus(sum, itemsIn(field.value)), 0);
    return 0;
  }

  function variableOf(name: string, variables: Readonly<Record<string, unknown>> | null): unknown {
    const value = variables && Object.hasOwn(variables, name) ? variables[name] : undefined;
    const fallback = defaults.get(name);
    return value === undefined && fallback ? plainValue(fallback) : value;
  }

  function typeNamed(name: string | undefined): GraphQLNamedType | undefined {
    return name === undefined ? undefined : schema.getType(name);
  }

  function fieldOf(type: GraphQLNamedType | undefined, name: string): GraphQLField<unknown, unknown> | undefined {
    if (name === SchemaMetaFieldDef.name) return SchemaMetaFieldDef;
    if (name === TypeMetaFieldDef.name) return TypeMetaFieldDef;
    return type && 'getFields' in type
      ? (type.getFields()[name] as GraphQLField<unknown, unknown> | undefined)
      : undefined;
  }
}

function total({ fixed, perItem }: SelectionCost): Amount {
  return plus(fixed, times(DEFAULT_SIZE, perItem));
}

/** A literal number; other literals have no size. */
function plainValue(node: ValueNode): unknown {
  return node.kind === Kind.INT ? Number(node.value) : undefined;
}

/** Long texts cost, too: the same variable may be passed to many fields. */
function textCost(text: string): number {
  return Math.floor(text.length / 1000);
}

function countItems(value: unknown): number {
  if (typeof value === 'string') return textCost(value);
  if (typeof value !== 'object' || value === null) return 0;
  let count = Array.isArray(value) ? value.length : 0;
  for (const inner of Object.values(value)) count += countItems(inner);
  return count;
}

/** The cost directives of a field. */
interface FieldCost {
  weight: number;
  /** The assumed size of a list. */
  size?: number;
  page?: { largest: number; arguments: readonly string[] };
  argumentWeights: ReadonlyMap<string, number>;
}

/** Sizes of the schema's introspection fields, which have no directives. Half of all types wrap another one. */
const INTROSPECTION_SIZES: Readonly<Record<string, number>> = {
  '__Schema.types': 72,
  '__Schema.directives': 8,
  '__Type.fields': 5,
  '__Type.interfaces': 0.2,
  '__Type.possibleTypes': 0.2,
  '__Type.enumValues': 2,
  '__Type.inputFields': 1,
  '__Type.ofType': 0.5,
  '__Field.args': 1,
  '__Directive.args': 2,
  '__Directive.locations': 2,
};

const costs = new WeakMap<object, FieldCost>();

/** The cost of a field by its directives `@cost` and `@listSize`. */
function costOfField(typeName: string, field: GraphQLField<unknown, never>): FieldCost {
  const known = costs.get(field);
  if (known) return known;
  const cost = readCost(typeName, field);
  costs.set(field, cost);
  return cost;
}

function readCost(typeName: string, { name, args, astNode }: GraphQLField<unknown, never>): FieldCost {
  const assumed = INTROSPECTION_SIZES[`${typeName}.${name}`];
  const weight = numberIn(astNode?.directives, 'cost', 'weight') ?? 1;
  const size = numberIn(astNode?.directives, 'listSize', 'assumedSize') ?? assumed;
  const slicing = valueIn(astNode?.directives, 'listSize', 'slicingArguments');
  const slicingArguments =
    slicing?.kind === Kind.LIST ? slicing.values.flatMap((item) => (item.kind === Kind.STRING ? item.value : [])) : [];
  const argumentWeights = new Map(
    args.map((arg) => [arg.name, numberIn(arg.astNode?.directives, 'cost', 'weight') ?? 0]),
  );
  if (size === undefined) return { weight, argumentWeights };
  return slicingArguments.length > 0
    ? { weight, argumentWeights, page: { largest: size, arguments: slicingArguments } }
    : { weight, argumentWeights, size };
}

function numberIn(
  directives: readonly DirectiveNode[] | undefined,
  name: string,
  argument: string,
): number | undefined {
  const value = valueIn(directives, name, argument);
  return value?.kind === Kind.INT ? Number(value.value) : undefined;
}

function valueIn(
  directives: readonly DirectiveNode[] | undefined,
  name: string,
  argument: string,
): ValueNode | undefined {
  return directives
    ?.find((directive) => directive.name.value === name)
    ?.arguments?.find((given) => given.name.value === argument)?.value;
}

/** A number, or one that depends on the variables of a request. */
export type Amount = number | ((variables: Readonly<Record<string, unknown>> | null) => number);

export function amountFor(amount: Amount, variables: Readonly<Record<string, unknown>> | null): number {
  return typeof amount === 'number' ? amount : amount(variables);
}

/** The sum of two amounts. */
function plus(one: Amount, other: Amount): Amount {
  if (typeof one === 'number' && typeof other === 'number') return one + other;
  return (variables) => amountFor(one, variables) + amountFor(other, variables);
}

/** The product of two amounts. */
function times(one: Amount, other: Amount): Amount {
  if (one === 0 || other === 0) return 0;
  if (typeof one === 'number' && typeof other === 'number') return one * other;
  return (variables) => amountFor(one, variables) * amountFor(other, variables);
}

/** The limits of one request. */
export interface BudgetLimits {
  /** Its cost, see `costOf`. */
  cost: number;
  /** The fields and list items that it resolves. */
  nodes: number;
  /** The characters of its answer. */
  characters: number;
  /** Its longest run time, in milliseconds. */
  timeMs: number;
  /** The longest wait of a large request before it starts, in milliseconds. */
  waitMs: number;
}

/** The limits of every request. */
export const BUDGET: BudgetLimits = {
  cost: 30_000,
  nodes: 60_000,
  characters: 4_000_000,
  timeMs: 10_000,
  waitMs: 5000,
};

/** Gives each request of a server its budget. */
export class Budgets {
  readonly limits: BudgetLimits;
  readonly #turns = new Turns();

  constructor(limits: Partial<BudgetLimits> = {}) {
    this.limits = { ...BUDGET, ...limits };
  }

  start(): RequestBudget {
    this.#turns.begin();
    return new RequestBudget(this.limits, this.#turns);
  }
}

/** The part of a context that belongs to its request. Everything else in it is for resolvers. */
export interface BudgetedRequest {
  readonly budget: RequestBudget;
}

export class RequestBudget {
  readonly limits: BudgetLimits;
  readonly turns: Turns;
  #nodes = 0;
  #reason: Error | undefined;
  #controller: AbortController | undefined;
  #queue: Promise<unknown> | undefined;
  /** Rejects the awaited result. */
  #reject: ((reason: Error) => void) | undefined;

  constructor(limits: BudgetLimits, turns: Turns) {
    this.limits = limits;
    this.turns = turns;
  }

  /** Aborted when the request is abandoned. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#reason && !this.#controller.signal.aborted) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  /** Stops the request: no further resolver starts. */
  abandon(reason: Error): void {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
    this.#reject?.(this.#reason);
  }

  get isAbandoned(): boolean {
    return this.#reason !== undefined;
  }

  /** Throws once the request was abandoned. */
  check(): void {
    if (this.#reason) throw this.#reason;
  }

  /** Does work, after a turn for other requests if necessary. */
  runYielding<Result>(work: () => Result): Result | Promise<Awaited<Result>> {
    return this.turns.isOver ? (this.yieldToEventLoop().then(work) as Promise<Awaited<Result>>) : work();
  }

  /** Does work after all earlier work, in the request's turn. */
  inSequence<Result>(work: () => Result): Promise<Awaited<Result>> {
    const result = (this.#queue ?? Promise.resolve()).then(() => this.runYielding(work)) as Promise<Awaited<Result>>;
    this.#queue = result.catch(() => {});
    return result;
  }

  /** Resolves in the request's next turn; rejects if it was abandoned. */
  async yieldToEventLoop(): Promise<void> {
    await this.turns.next();
    this.check();
  }

  /** Counts fields and list items. @throws GraphQLError COST_EXCEEDED */
  addNodes(count: number): void {
    this.#nodes += count;
    if (this.#nodes > this.limits.nodes) throw answerTooLarge('fields and items', this.limits.nodes);
  }

  /** The result of the request. Rejects as soon as the request is abandoned, or its time is up. */
  async within<Result>(work: Promise<Result>): Promise<Result> {
    const timer = setTimeout(() => this.abandon(timeExceeded(this.limits.timeMs)), this.limits.timeMs);
    try {
      return await new Promise<Result>((resolve, reject) => {
        this.#reject = reject;
        if (this.#reason) reject(this.#reason);
        work.then(resolve, reject);
      });
    } finally {
      clearTimeout(timer);
    }
  }
}

/** How many items of lists are computed between two checks whether the turn is over. */
export const GROUP_SIZE = 20;

/** The length of a turn: how long requests compute before the event loop continues, in milliseconds. */
const SLICE_MS = 5;

/**
 * Divides long requests into turns, so that other requests wait for one turn and not for a whole request. All requests
 * of a server share the turns, and continue in the order in which they were interrupted.
 */
export class Turns {
  readonly #sliceMs: number;
  #endsAt = 0;
  #waiting = 0;
  #last: Promise<void> = Promise.resolve();

  constructor(sliceMs = SLICE_MS) {
    this.#sliceMs = sliceMs;
  }

  /** A request starts to compute. */
  begin(): void {
    if (this.#waiting === 0) this.#endsAt = performance.now() + this.#sliceMs;
  }

  /** True if a request must wait for `next` before it computes more. */
  get isOver(): boolean {
    return this.#waiting > 0 || this.isTimeUp;
  }

  /** Like `isOver`, for a request that has just had its turn: waiting ones do not end it. */
  get isTimeUp(): boolean {
    return performance.now() >= this.#endsAt;
  }

  /** Resolves when it is the caller's turn. */
  next(): Promise<void> {
    this.#waiting += 1;
    this.#last = this.#take(this.#last);
    return this.#last;
  }

  async #take(previous: Promise<void>): Promise<void> {
    await previous;
    // Work started in the previous turn comes first.
    await new Promise<void>((resolve) => {
      process.nextTick(resolve);
    });
    if (performance.now() >= this.#endsAt) {
      // Requests that arrived are handled and answered before the next turn.
      await setImmediate();
      await setImmediate();
      this.#endsAt = performance.now() + this.#sliceMs;
    }
    this.#waiting -= 1;
  }
}

export const MAX_ERRORS = 1000;

/** Checks that an answer has not too many errors. @throws GraphQLError COST_EXCEEDED */
export function checkErrors(errors: readonly unknown[]): void {
  if (errors.length > MAX_ERRORS) throw answerTooLarge('errors', MAX_ERRORS);
}

/** The length of an answer, in characters. Once it is over the limit, no further resolver starts. */
export class AnswerLength {
  readonly #budget: RequestBudget;
  readonly #limit: number;
  #characters = 0;

  constructor(budget: RequestBudget) {
    this.#budget = budget;
    this.#limit = budget.limits.characters;
  }

  add(characters: number): void {
    this.#characters += characters;
    if (this.#characters > this.#limit && !this.#budget.isAbandoned)
      this.#budget.abandon(answerTooLarge('characters', this.#limit));
  }

  addValue(value: unknown): void {
    this.add(lengthOf(value, this.#limit));
  }

  /** @throws GraphQLError COST_EXCEEDED if there are too many */
  check(): void {
    if (this.#characters > this.#limit) throw answerTooLarge('characters', this.#limit);
  }
}

/** How many characters of an answer are written between two checks whether the turn is over. */
const PIECE = 50_000;

/** Writes the data of an answer as JSON, in pieces with turns of the event loop between them. */
export function writeData(
  data: Readonly<Record<string, unknown>> | null,
  budget: RequestBudget,
): string | Promise<string> {
  return data === null || !budget.turns.isTimeUp ? JSON.stringify(data) : writeInPieces(data, budget);
}

/** Writes short answers at once: waiting would keep finished answers in memory. */
async function writeInPieces(data: Readonly<Record<string, unknown>>, budget: RequestBudget): Promise<string> {
  const parts: string[] = [];
  let characters = 0;
  for (const [name, value] of Object.entries(data)) {
    if (characters > PIECE && budget.turns.isTimeUp) {
      await budget.turns.next();
      characters = 0;
    }
    const part = `${JSON.stringify(name)}:${JSON.stringify(value)}`;
    characters += part.length;
    parts.push(part);
  }
  return `{${parts.join(',')}}`;
}

/** Adds up the length of a value as JSON, until it exceeds a limit. */
function lengthOf(value: unknown, limit: number): number {
  let length = 0;
  const open: unknown[] = [value];
  while (open.length > 0 && length <= limit) {
    const next = open.pop();
    if (typeof next === 'string') length += next.length + 2;
    else if (typeof next !== 'object' || next === null) length += 4;
    else
      for (const [name, inner] of Object.entries(next)) {
        if (!Array.isArray(next)) length += name.length + 3;
        open.push(inner);
      }
  }
  return length;
}

/** The error for a request that costs more than is allowed, before it runs. */
export function costExceeded(cost: number, limit: number): GraphQLError {
  return new GraphQLError(
    `The request costs ${Math.ceil(cost)}; at most ${limit} is allowed. Ask for smaller pages or fewer fields.`,
    { extensions: { code: 'COST_EXCEEDED', cost: Math.ceil(cost), limit } },
  );
}

/** The error for a request that turns out larger than its cost. */
export function answerTooLarge(what: string, limit: number): GraphQLError {
  return new GraphQLError(
    `The answer has more than ${limit} ${what}, the most that is allowed. Ask for smaller pages or fewer fields.`,
    // Amounts beyond the limit are not counted.
    { extensions: { code: 'COST_EXCEEDED', cost: limit + 1, limit } },
  );
}

function timeExceeded(limitMs: number): GraphQLError {
  return new GraphQLError(
    `The request took longer than ${limitMs / 1000} seconds and was abandoned. Changes may have been made.`,
    { extensions: { code: 'TIME_EXCEEDED', limitMs } },
  );
}

/** The error that ends the work for a disconnected client. It is never sent. */
export function clientGone(): GraphQLError {
  return new GraphQLError('The client has closed the connection.', { extensions: { code: 'BAD_REQUEST' } });
}

/**
 * Makes every field that can be expensive obey the budget of the request: no resolver starts once it is abandoned, and
 * the items of lists are counted.
 */
export function keepToBudget(schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || type.name.startsWith('__')) continue;
    for (const field of Object.values(type.getFields()) as Field[]) {
      if (isExpensiveList(field)) wrapList(field);
      else if (field.resolve) wrap(field, field.resolve);
      if (type === schema.getQueryType() && costOfField(type.name, field).weight > 1) resolveInSequence(field);
    }
  }
}

type Field = GraphQLField<unknown, BudgetedRequest>;

function wrap(field: Field, resolve: NonNullable<Field['resolve']>): void {
  field.resolve = (parent, args, context, info) => {
    context.budget.check();
    return resolve(parent, args, context, info);
  };
}

function wrapList(field: Field): void {
  const resolve = field.resolve ?? defaultFieldResolver;
  field.resolve = (parent, args, context, info) => {
    context.budget.check();
    const value: unknown = resolve(parent, args, context, info);
    return value instanceof Promise
      ? value.then((items: unknown) => budgeted(items, context, info))
      : budgeted(value, context, info);
  };
}

/** SQLite answers without giving other requests a turn, so these fields are resolved one by one. */
function resolveInSequence(field: Field): void {
  const { resolve } = field;
  if (!resolve) return;
  field.resolve = (parent, args, context, info) =>
    context.budget.inSequence(() => resolve(parent, args, context, info));
}

/** A list of enum values that the parent object has already is short. */
function isExpensiveList({ type, resolve }: Field): boolean {
  const nullable = getNullableType(type);
  return isListType(nullable) && (resolve !== undefined || !isEnumType(getNullableType(nullable.ofType)));
}

function budgeted(value: unknown, { budget }: BudgetedRequest, info: GraphQLResolveInfo): unknown {
  budget.check();
  if (Array.isArray(value)) budget.addNodes(value.length * (1 + fieldsBelow(info)));
  return value;
}

/** Keyed by the nodes of one place in one plan: other conditions merge other nodes there. */
const counts = new WeakMap<readonly FieldNode[], number>();

/** How many fields a selection has, with fragments expanded. */
function fieldsBelow({ fieldNodes, fragments }: GraphQLResolveInfo): number {
  if (!fieldNodes[0]?.selectionSet) return 0;
  let count = counts.get(fieldNodes);
  if (count === undefined) {
    count = fieldNodes.reduce((sum, { selectionSet }) => sum + (selectionSet ? countFields(selectionSet) : 0), 0);
    counts.set(fieldNodes, count);
  }
  return count;

  function countFields({ selections }: SelectionSetNode): number {
    return selections.reduce((sum, selection) => {
      if (selection.kind === Kind.FRAGMENT_SPREAD)
        return sum + countFields(fragments[selection.name.value]!.selectionSet);
      const inner = selection.selectionSet ? countFields(selection.selectionSet) : 0;
      return sum + inner + (selection.kind === Kind.FIELD ? 1 : 0);
    }, 0);
  }
}
