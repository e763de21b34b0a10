import { randomUUID } from 'node:crypto';
import { graphqlServer } from '@hono/graphql-server';
import {
  type DocumentNode,
  type ExecutionResult,
  GraphQLError,
  type GraphQLFormattedError,
  type GraphQLSchema,
} from 'graphql';
import type { Context } from 'hono';
import {
  type Amount,
  amountFor,
  type BudgetedContext,
  type Budgets,
  clientGone,
  costExceeded,
  costOf,
  type CreateContext,
  type Eventual,
  introspects,
  isMutation,
  operationNameIn,
  type PreparedOperation,
  PreparedOperations,
  readDocument,
  type RequestBudget,
  writeData,
} from '../graphql/index.ts';
import { errorEntry, isKeysError } from '../keys/basics/index.ts';
import { redactSecrets } from '../keys/secret/index.ts';
import { Admission, LIGHT_COST } from './admission.ts';
import type { Admitted, BearerCheck } from './bearer-check.ts';
import {
  type ErrorReply,
  errorReply,
  GRAPHQL_RESPONSE,
  graphqlReply,
  internalError,
  JSON_RESPONSE,
  negotiate,
  type Reply,
  RequestRefused,
  type ResponseType,
} from './replies.ts';
import {
  checkIntrospection,
  errorsInOrder,
  firstErrors,
  formatGraphQLError,
  type IntrospectionMode,
  mayKnowSchema,
  withoutSuggestion,
} from './graphql-errors.ts';
import type { ServedRequest } from './received.ts';
import type { RequestNotes } from './request-notes.ts';
import type { Principal } from '../keys/authorization/index.ts';
import type { Log } from '../log.ts';
import {
  type GraphQLParameters,
  isByUrl,
  readBody,
  readBodyParameters,
  readSearchParameters,
} from './graphql-parameters.ts';

/** Options of the pipeline. */
interface GraphQLPipelineOptions {
  schema: GraphQLSchema;
  /** Makes further properties of the context for a program's own resolvers. */
  createContext?: CreateContext | undefined;
  check: BearerCheck;
  budgets: Budgets;
  introspection: IntrospectionMode;
  log: Log;
}

/** A parsed document, and its cost. */
interface ReadDocument {
  document: DocumentNode;
  cost: Amount;
}

/** A prepared operation, or the errors of an invalid document in the same form. */
type Operation = Pick<PreparedOperation, 'cost' | 'name' | 'isMutation' | 'introspects' | 'execute'>;

/** The inputs of a reply besides its result. */
interface ReplyContext {
  budget: RequestBudget;
  notes: RequestNotes | undefined;
  /** Undefined if it was not known yet. */
  principal?: Principal;
}

/** The handler of the GraphQL endpoint, for requests with an accepted key: it reads, prepares and executes them. */
export class GraphQLPipeline {
  readonly #options: GraphQLPipelineOptions;
  readonly #operations: PreparedOperations;
  readonly #errorsOf: ErrorsOf;
  readonly #admission: Admission;

  constructor(options: GraphQLPipelineOptions) {
    this.#options = options;
    this.#admission = new Admission(options.budgets.limits.waitMs);
    this.#operations = new PreparedOperations(options.schema);
    this.#errorsOf = documentErrors(options.schema);
  }

  /** Answers an accepted request. */
  async answer(request: ServedRequest, admitted: Admitted): Promise<Reply> {
    if (request.method !== 'POST' && !isByUrl(request)) return noted(methodNotAllowed(), request.notes);
    let type: ResponseType = JSON_RESPONSE;
    let done: (() => void) | undefined;
    const { check, createContext, introspection } = this.#options;
    const budget = this.#options.budgets.start();
    const details = request.notes?.details;
    try {
      type = negotiate(request.header('accept'));
      const sent = isByUrl(request) ? request.search : await readBody(request);
      const bytes = sent.length;
      const parameters = typeof sent === 'string' ? readSearchParameters(sent) : readBodyParameters(sent);
      details?.ended('read');
      const prepared = this.#prepare(parameters);
      const operation = prepared instanceof Promise ? await prepared : prepared;
      request.notes?.noteOperation(operation, admitted.token);
      if (operation.isMutation && isByUrl(request)) throw mutationByUrl();
      const cost = amountFor(operation.cost, parameters.variables);
      if (cost > budget.limits.cost) throw costExceeded(cost, budget.limits.cost);
      details?.ended('prepare');
      if (cost > LIGHT_COST) {
        const { id: keyId } = admitted.principal.apiKey;
        done = await this.#admission.enter({ keyId, bytes, onClientGone: (gone) => request.onClientGone(gone) });
        details?.ended('wait');
      }
      // Comes before the second check of the key, since it can take long.
      const made = contextOf(request, admitted.principal, budget);
      if (createContext) await budget.within(addTo(made, createContext));
      // Checks the key again now that everything is ready to run.
      const entered = check.again(request, admitted);
      const admission = entered instanceof Promise ? await entered : entered;
      if ('refusal' in admission) return admission.refusal;
      const { principal } = admission;
      if (operation.introspects) checkIntrospection(introspection, principal);
      const context = made.principal === principal ? made : Object.assign(made, { principal });
      const executed = this.#execute(operation, parameters, { request, context });
      const result = executed instanceof Promise ? await executed : executed;
      details?.ended('execute');
      const reply = this.#reply(type, result, { budget, notes: request.notes, principal });
      return reply instanceof Promise ? await reply : reply;
    } catch (error) {
      if (error instanceof RequestRefused) return noted(refusedReply(type, error), request.notes);
      if (error instanceof GraphQLError)
        return this.#reply(type, { errors: [error] }, { budget, notes: request.notes });
      throw error;
    } finally {
      done?.();
    }
  }

  /** The reply to a request that failed unexpectedly, which is logged. */
  failed(error: unknown, { notes }: Pick<ServedRequest, 'notes'>): Reply {
    const requestId = notes?.id ?? randomUUID();
    const known = isKeysError(error) && statusOfFeature(error.code);
    if (!known || known >= 500) this.#options.log.error({ err: error, requestId }, 'a request failed');
    return noted(known ? errorReply(error.code, redactSecrets(error.message)) : internalError(requestId), notes);
  }

  /** Finds an operation, or parses it. @throws GraphQLError if it has a syntax error or exceeds a limit */
  #prepare(parameters: GraphQLParameters): Eventual<Operation> {
    const { query, operationName } = parameters;
    const prepared = this.#operations.find(query, operationName);
    if (prepared) return prepared;
    const document = readDocument(query, operationName);
    const read = { document, cost: costOf(this.#options.schema, document, operationName) };
    if (this.#operations.hasSeen(query, operationName)) return this.#operations.prepare(query, operationName, read);
    return this.#validate(parameters, read);
  }

  async #validate(parameters: GraphQLParameters, read: ReadDocument): Promise<Operation> {
    const { query, operationName } = parameters;
    const invalid = await this.#errorsOf(parameters);
    return invalid
      ? invalidOperation(read, operationName, invalid)
      : this.#operations.prepare(query, operationName, read);
  }

  /** Executes an operation until it is done, its time is up, or its client has gone. */
  #execute(
    operation: Operation,
    { variables }: GraphQLParameters,
    { request, context }: { request: ServedRequest; context: BudgetedContext },
  ): Eventual<ExecutionResult> {
    try {
      const result = operation.execute(context, variables);
      return result instanceof Promise ? finish(result, request, context.budget) : result;
    } catch (error) {
      return failedWith(error);
    }
  }

  #reply(type: ResponseType, result: ExecutionResult, { budget, notes, principal }: ReplyContext): Eventual<Reply> {
    const errors = result.errors && this.#format(result, notes);
    if (errors && principal && !mayKnowSchema(this.#options.introspection, principal))
      for (const [index, error] of errors.entries())
        errors[index] = { ...error, message: withoutSuggestion(error.message) };
    // Only the newer media type has 4xx statuses for requests that were not executed.
    if (result.data === undefined) {
      const said = JSON.stringify({ errors: firstErrors(errors ?? []) });
      return graphqlReply(type === GRAPHQL_RESPONSE ? 400 : 200, type, said);
    }
    const said = errors && `"errors":${JSON.stringify(errors)}`;
    const reply = (data: string) => graphqlReply(200, type, said ? `{${said},"data":${data}}` : `{"data":${data}}`);
    const data = writeData(result.data, budget);
    return typeof data === 'string' ? reply(data) : data.then(reply);
  }

  #format(result: ExecutionResult, notes: RequestNotes | undefined): GraphQLFormattedError[] {
    const errors = errorsInOrder(result);
    if (notes) notes.errors = errors.length;
    const formatted = errors.map((error) =>
      formatGraphQLError(error, { log: this.#options.log, requestId: notes?.id }),
    );
    // A missing permission was recorded earlier, whichever error comes first.
    if (notes?.details) notes.details.code ??= formatted[0]?.extensions?.['code'] as string | undefined;
    return formatted;
  }
}

/** An operation that returns the errors of its invalid document, after all other checks of the request. */
function invalidOperation(
  { document, cost }: ReadDocument,
  operationName: string | null,
  result: ExecutionResult,
): Operation {
  return {
    cost,
    name: operationNameIn(document, operationName),
    isMutation: isMutation(document, operationName),
    introspects: introspects(document),
    execute: () => result,
  };
}

/** Records the code of a reply. */
function noted(reply: ErrorReply, notes: RequestNotes | undefined): Reply {
  if (notes?.details) notes.details.code = reply.error.code;
  return reply;
}

async function finish(
  result: Promise<ExecutionResult>,
  request: ServedRequest,
  budget: RequestBudget,
): Promise<ExecutionResult> {
  const end = request.onClientGone(() => budget.abandon(clientGone()));
  try {
    return await budget.within(result);
  } catch (error) {
    return failedWith(error);
  } finally {
    end();
  }
}

/** The result of an operation that failed as a whole. */
function failedWith(error: unknown): ExecutionResult {
  if (error instanceof GraphQLError) return { data: null, errors: [error] };
  throw error;
}

/** Thrown when the handler would execute a valid document, since the handler passes on values that are no `Error`. */
const VALID = Symbol('valid');

/** The errors of a request's document; undefined if it is valid. Call `readDocument` first, which limits the effort. */
type ErrorsOf = (parameters: GraphQLParameters) => Promise<ExecutionResult | undefined>;

/**
 * Lets `@hono/graphql-server` parse and validate new documents. Its handler gets the four members of a request that it
 * reads, and its reply is captured, as the status is wrong. Relies on internals of version 0.7, so that version is pinned.
 */
export function documentErrors(schema: GraphQLSchema): ErrorsOf {
  const handler = graphqlServer({
    schema,
    rootResolver: () => {
      throw VALID;
    },
  });
  // `Headers` would load all of the Fetch API, see `listen`.
  const headers = new Map([['content-type', 'application/json']]);
  return async (parameters) => {
    const raw = { method: 'POST', url: '/', headers, json: async () => parameters };
    let result: ExecutionResult = {};
    const json = (body: ExecutionResult) => void (result = body);
    try {
      await handler({ req: { method: 'POST', raw }, json } as unknown as Context, async () => {});
    } catch (thrown) {
      if (thrown === VALID) return undefined;
      throw thrown;
    }
    return result;
  };
}

/** The property of a context that holds its request. */
const SOURCE = Symbol('source');

/** Created on first use. An own property, so that copies of the context have it, too; one getter for all contexts. */
const REQUEST: PropertyDescriptor = {
  enumerable: true,
  get(this: { [SOURCE]: ServedRequest }): Request {
    return this[SOURCE].webRequest;
  },
};
const SIGNAL: PropertyDescriptor = {
  enumerable: true,
  get(this: { budget: RequestBudget }): AbortSignal {
    return this.budget.signal;
  },
};

/** The context of a request for its resolvers. */
function contextOf(request: ServedRequest, principal: Principal, budget: RequestBudget): BudgetedContext {
  const context = { principal, budget, [SOURCE]: request };
  // Getters in a literal, and `defineProperties`, take several times as long.
  Object.defineProperty(context, 'request', REQUEST);
  return Object.defineProperty(context, 'signal', SIGNAL) as unknown as BudgetedContext;
}

/** Adds a program's own properties to the context. @throws Error if one would replace a property of ours */
async function addTo(context: BudgetedContext, create: CreateContext): Promise<void> {
  const added = await create(context);
  const replaced = Object.keys(added).find((name) => name in context);
  if (replaced !== undefined)
    throw new Error(`The option "context" returned "${replaced}", which every context has. Use another name.`);
  Object.assign(context, added);
}

/** The reply to a refused request, in the client's media type. */
function refusedReply(type: ResponseType, { code, message, headers }: RequestRefused): ErrorReply {
  const reply = errorReply(code, message);
  return { ...reply, ...graphqlReply(reply.status, type, reply.text, headers) };
}

/** The reply to a request with another method. */
function methodNotAllowed(): ErrorReply {
  const message = 'Send GraphQL by POST. You can also send queries by GET.';
  return errorReply('METHOD_NOT_ALLOWED', message, { Allow: 'GET, HEAD, POST' });
}

/** The refusal of a mutation in the URL of a GET request. */
function mutationByUrl(): RequestRefused {
  return new RequestRefused('METHOD_NOT_ALLOWED', 'Send mutations by POST.', { Allow: 'POST' });
}

/** The status of replies with a code of a feature; undefined for other codes. */
function statusOfFeature(code: string): number | undefined {
  const { feature, status } = errorEntry(code) ?? {};
  return feature === undefined ? undefined : status;
}
