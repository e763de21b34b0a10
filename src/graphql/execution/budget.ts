import { setImmediate } from 'node:timers/promises';
import {
  defaultFieldResolver,
  type FieldNode,
  getNullableType,
  GraphQLError,
  type GraphQLField,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  isEnumType,
  isListType,
  isObjectType,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import { costOfField } from './cost.ts';

/** What one request may take. */
export interface BudgetLimits {
  /** Its cost, see `costOf`. */
  cost: number;
  /** The fields and list items that it resolves. */
  nodes: number;
  /** The characters of its answer. */
  characters: number;
  /** How long it runs, in milliseconds. */
  timeMs: number;
}

/** The limits of every request. */
export const BUDGET: BudgetLimits = { cost: 30_000, nodes: 60_000, characters: 4_000_000, timeMs: 10_000 };

/** Gives each request of a server its budget. */
export class Budgets {
  readonly limits: BudgetLimits;
  readonly #turns = new Turns();

  constructor(limits: Partial<BudgetLimits> = {}) {
    this.limits = { ...BUDGET, ...limits };
  }

  /** The budget of a request that starts now. */
  start(): RequestBudget {
    this.#turns.begin();
    return new RequestBudget(this.limits, this.#turns);
  }
}

/** What a context has of the request that it is for: whatever else is in it is for the resolvers. */
export interface BudgetedRequest {
  /** What the request has taken of what it may take. */
  readonly budget: RequestBudget;
}

/** What a request has taken of its budget. */
export class RequestBudget {
  readonly limits: BudgetLimits;
  readonly turns: Turns;
  #nodes = 0;
  #reason: Error | undefined;
  #controller: AbortController | undefined;
  #queue: Promise<unknown> | undefined;
  /** Rejects the result that is waited for. */
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

  /** Stops the request: no resolver is started any more. */
  abandon(reason: Error): void {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
    this.#reject?.(this.#reason);
  }

  /** Whether the request was abandoned. */
  get isAbandoned(): boolean {
    return this.#reason !== undefined;
  }

  /** Throws once the request was abandoned. */
  check(): void {
    if (this.#reason) throw this.#reason;
  }

  /** Does work, if necessary after other requests had their turn. */
  runYielding<Result>(work: () => Result): Result | Promise<Awaited<Result>> {
    return this.turns.isOver ? (this.yieldToEventLoop().then(work) as Promise<Awaited<Result>>) : work();
  }

  /** Does work after the work before it is done, and when it is the request's turn. */
  inSequence<Result>(work: () => Result): Promise<Awaited<Result>> {
    const result = (this.#queue ?? Promise.resolve()).then(() => this.runYielding(work)) as Promise<Awaited<Result>>;
    this.#queue = result.catch(() => {});
    return result;
  }

  /** Resolves when it is the request's turn; rejects once it was abandoned. */
  async yieldToEventLoop(): Promise<void> {
    await this.turns.next();
    this.check();
  }

  /** Counts fields and list items. @throws GraphQLError COST_EXCEEDED */
  addNodes(count: number): void {
    this.#nodes += count;
    if (this.#nodes > this.limits.nodes) throw answerTooLarge('fields and items', this.limits.nodes);
  }

  /** The result of the request; rejects as soon as the request is abandoned, at the latest when its time is up. */
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

/** So many items of lists are computed before a request looks whether its turn is over. */
export const GROUP_SIZE = 20;

/** How long requests compute until the event loop gets a turn, in milliseconds. */
const SLICE_MS = 5;

/**
 * Divides the time of long requests into slices, so that other requests wait for one slice and not for a whole request.
 * All requests of a server share the slices, and continue in the order in which they were interrupted.
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

  /** Whether to wait for `next` before computing more. */
  get isOver(): boolean {
    return this.#waiting > 0 || this.isTimeUp;
  }

  /** The same for whoever has just had a turn: others who wait do not end it. */
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
    // What the turn before has set in motion comes first.
    await new Promise<void>((resolve) => {
      process.nextTick(resolve);
    });
    if (performance.now() >= this.#endsAt) {
      // What arrived meanwhile is handled in one turn, and sent by its end.
      await setImmediate();
      await setImmediate();
      this.#endsAt = performance.now() + this.#sliceMs;
    }
    this.#waiting -= 1;
  }
}

/** How many errors an answer may have. */
export const MAX_ERRORS = 1000;

/** Checks that an answer has not too many errors. @throws GraphQLError COST_EXCEEDED */
export function checkErrors(errors: readonly unknown[]): void {
  if (errors.length > MAX_ERRORS) throw answerTooLarge('errors', MAX_ERRORS);
}

/** How long an answer gets, in characters. Once there are too many, no resolver starts any more. */
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

  /** Adds those of a value as JSON. */
  addValue(value: unknown): void {
    this.add(lengthOf(value, this.#limit));
  }

  /** @throws GraphQLError COST_EXCEEDED if there are too many */
  check(): void {
    if (this.#characters > this.#limit) throw answerTooLarge('characters', this.#limit);
  }
}

/** So many characters of an answer are written before it looks whether its turn is over. */
const PIECE = 50_000;

/** Writes the data of an answer as JSON, in pieces between which the event loop may get a turn. */
export function writeData(
  data: Readonly<Record<string, unknown>> | null,
  budget: RequestBudget,
): string | Promise<string> {
  return data === null || !budget.turns.isTimeUp ? JSON.stringify(data) : writeInPieces(data, budget);
}

/** What is short is written at once: to wait would keep finished answers in memory. */
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

/** Adds up the characters of a value as JSON, until they are over a limit. */
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

/** The error for a request that turns out to be larger than its cost told. */
export function answerTooLarge(what: string, limit: number): GraphQLError {
  return new GraphQLError(
    `The answer has more than ${limit} ${what}, the most that is allowed. Ask for smaller pages or fewer fields.`,
    // What is beyond the limit is not counted.
    { extensions: { code: 'COST_EXCEEDED', cost: limit + 1, limit } },
  );
}

/** The error for a request that takes longer than is allowed. */
function timeExceeded(limitMs: number): GraphQLError {
  return new GraphQLError(
    `The request took longer than ${limitMs / 1000} seconds and was abandoned. Changes may have been made.`,
    { extensions: { code: 'TIME_EXCEEDED', limitMs } },
  );
}

/** Why the work for a client ends that has closed its connection. Nobody reads it. */
export function clientGone(): GraphQLError {
  return new GraphQLError('The client has closed the connection.', { extensions: { code: 'BAD_REQUEST' } });
}

/**
 * Makes every field that can be expensive keep to the budget of the request: no resolver starts once the request is
 * abandoned, and the items of lists are counted.
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

/** SQLite answers without leaving a turn to other requests: what many fields read is read one by one. */
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

/** By the nodes of one place in one plan: with other conditions, other nodes are merged there. */
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
