import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ExecutionResult } from 'graphql';
import { clientGone } from '../graphql/budget/errors.ts';
import type { Budgets, RequestBudget } from '../graphql/budget/request-budget.ts';
import type { CompiledOperations, RunOperation } from '../graphql/compiled-operations.ts';
import type { BudgetedContext } from '../graphql/context.ts';
import type { Principal } from '../keys/authorization/principal.ts';
import type { KeysService } from '../keys/service.ts';
import type { GraphQLParameters } from './graphql-request.ts';
import type { ResponseType } from './media-type.ts';
import { ParametersReader } from './parameters-reader.ts';
import { HeadReader } from './plain-request.ts';
import { NO_STORE } from './replies.ts';

/** Answers a request, or calls `next` to let the app do so; if the body was read, it is then in `rawBody`. */
export type FastPath = (
  incoming: IncomingMessage & { rawBody?: Buffer },
  outgoing: ServerResponse,
  next: () => void,
) => void;

/** A request with its budget, if the fast path had to abandon it. */
export type AbandonedRequest = IncomingMessage & { abandoned?: RequestBudget };

/**
 * The fast path for repeated requests, with a verified key and a compiled query. All other requests, and all that fail,
 * take the full path through the app, which alone produces errors.
 */
export function graphqlFastPath(
  { authenticator }: KeysService,
  operations: CompiledOperations,
  budgets: Budgets,
): FastPath {
  const [heads, bodies] = [new HeadReader(), new ParametersReader()];
  return (incoming, outgoing, next) => {
    const request = heads.read(incoming);
    // The key is checked before the body is read.
    if (!request || !authenticator.findVerified(request.digest)) return next();
    readBody(incoming, (body) => {
      incoming.rawBody = body;
      // And again, once there is something to run.
      const verified = authenticator.findVerified(request.digest);
      if (!verified) return next();
      const parameters = bodies.read(body);
      const budget = budgets.speculative();
      const result = parameters && run(parameters, operations, contextOf(verified.principal, incoming, budget));
      const answer = (executed: ExecutionResult | undefined) => {
        const text = executed && !executed.errors && serialize(executed);
        if (!text) return next();
        authenticator.countUse(verified);
        send(outgoing, request.type, text);
      };
      if (!(result instanceof Promise)) return answer(result);
      outgoing.once('close', () => budget.abandon(clientGone()));
      const passOn = () => {
        if (budget.isAbandoned) (incoming as AbandonedRequest).abandoned = budget;
        next();
      };
      budget.within(result).then(answer, passOn);
    });
  };
}

function run(
  { query, operationName, variables }: GraphQLParameters,
  operations: CompiledOperations,
  context: BudgetedContext,
): ReturnType<RunOperation> | undefined {
  try {
    return operations.find(query, operationName)?.(context, variables);
  } catch {
    return undefined;
  }
}

/** Where a context keeps its request. */
const INCOMING = Symbol('incoming');

/** Created on first use. Own properties, so that copies of the context have them, too; one getter for all. */
const REQUEST: PropertyDescriptor = {
  enumerable: true,
  get(this: { [INCOMING]: IncomingMessage & { webRequest?: Request } }): Request {
    const incoming = this[INCOMING];
    return (incoming.webRequest ??= requestOf(incoming.url!, incoming.rawHeaders));
  },
};
const SIGNAL: PropertyDescriptor = {
  enumerable: true,
  get(this: { budget: RequestBudget }): AbortSignal {
    return this.budget.signal;
  },
};

/** `defineProperties` would take twice as long. */
function contextOf(principal: Principal, incoming: IncomingMessage, budget: RequestBudget): BudgetedContext {
  const context = { principal, budget, isSpeculative: true, [INCOMING]: incoming };
  return Object.defineProperty(
    Object.defineProperty(context, 'request', REQUEST),
    'signal',
    SIGNAL,
  ) as unknown as BudgetedContext;
}

function requestOf(url: string, rawHeaders: readonly string[]): Request {
  const headers = new Headers();
  for (let index = 0; index < rawHeaders.length; index += 2) headers.append(rawHeaders[index]!, rawHeaders[index + 1]!);
  return new Request(`http://${headers.get('host')}${url}`, { method: 'POST', headers });
}

/** Reads the whole body. If it is cut off, nobody is left to answer. */
function readBody(incoming: IncomingMessage, done: (body: Buffer) => void): void {
  const chunks: Buffer[] = [];
  incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
  incoming.once('end', () => done(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
  incoming.once('error', () => {});
}

/** The reply as JSON; undefined if a value cannot be serialized. */
function serialize({ data }: ExecutionResult): string | undefined {
  try {
    return JSON.stringify({ data });
  } catch {
    return undefined;
  }
}

/** Sends the same headers in the same order as the app. */
function send(outgoing: ServerResponse, type: ResponseType, text: string): void {
  const length = Buffer.byteLength(text);
  outgoing.writeHead(200, [
    'cache-control',
    NO_STORE['Cache-Control'],
    'content-type',
    `${type}; charset=utf-8`,
    'content-length',
    String(length),
  ]);
  // For ASCII text, Latin-1 gives the same bytes, and Node writes it together with the headers.
  outgoing.end(text, length === text.length ? 'latin1' : 'utf8');
}
