import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ExecutionResult } from 'graphql';
import type { CompiledOperations, RunOperation } from '../graphql/compiled-operations.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import type { Principal } from '../keys/authorization/principal.ts';
import type { KeysService } from '../keys/service.ts';
import type { GraphQLParameters } from './graphql-request.ts';
import type { ResponseType } from './media-type.ts';
import { ParametersReader } from './parameters-reader.ts';
import { HeadReader } from './plain-request.ts';
import { NO_STORE } from './replies.ts';

/** Answers a request, or leaves it to `next`, which finds its body in `rawBody` where that was read. */
export type FastPath = (
  incoming: IncomingMessage & { rawBody?: Buffer },
  outgoing: ServerResponse,
  next: () => void,
) => void;

/**
 * The short way for what is asked over and over: a key that was verified, a query that was compiled. Whatever is not
 * plainly so goes the whole way, through the app, and so does what fails: every error is made there.
 */
export function graphqlFastPath({ authenticator }: KeysService, operations: CompiledOperations): FastPath {
  const [heads, bodies] = [new HeadReader(), new ParametersReader()];
  return (incoming, outgoing, next) => {
    const request = heads.read(incoming);
    // Before anything of the body is read.
    const verified = request && authenticator.findVerified(request.digest);
    if (!request || !verified) return next();
    readBody(incoming, (body) => {
      incoming.rawBody = body;
      const parameters = bodies.read(body);
      const result = parameters && run(parameters, operations, contextOf(verified.principal, incoming));
      const answer = (done: ExecutionResult | undefined) => {
        const text = done && !done.errors && serialize(done);
        if (!text) return next();
        authenticator.countUse(verified);
        send(outgoing, request.type, text);
      };
      if (result instanceof Promise) result.then(answer, next);
      else answer(result);
    });
  };
}

function run(
  { query, operationName, variables }: GraphQLParameters,
  operations: CompiledOperations,
  context: GraphQLContext,
): ReturnType<RunOperation> | undefined {
  try {
    return operations.find(query, operationName)?.(context, variables);
  } catch {
    return undefined;
  }
}

/** The request that a context stands for. */
const INCOMING = Symbol('incoming');

/** Makes the request where one asks for it. One function for all contexts: a property of each, so that copies have it, too. */
const REQUEST: PropertyDescriptor = {
  enumerable: true,
  get(this: { [INCOMING]: IncomingMessage & { asked?: Request } }): Request {
    const incoming = this[INCOMING];
    return (incoming.asked ??= requestOf(incoming.url!, incoming.rawHeaders));
  },
};

/** The context of the resolvers. */
function contextOf(principal: Principal, incoming: IncomingMessage): GraphQLContext {
  return Object.defineProperty(
    { principal, isSpeculative: true, [INCOMING]: incoming },
    'request',
    REQUEST,
  ) as unknown as GraphQLContext;
}

function requestOf(url: string, rawHeaders: readonly string[]): Request {
  const headers = new Headers();
  for (let index = 0; index < rawHeaders.length; index += 2) headers.append(rawHeaders[index]!, rawHeaders[index + 1]!);
  return new Request(`http://${headers.get('host')}${url}`, { method: 'POST', headers });
}

/** Reads the whole body. One that breaks off has nobody to answer to. */
function readBody(incoming: IncomingMessage, done: (body: Buffer) => void): void {
  const chunks: Buffer[] = [];
  incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
  incoming.once('end', () => done(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
  incoming.once('error', () => {});
}

/** The reply as JSON; nothing where a value can't be put so. */
function serialize({ data }: ExecutionResult): string | undefined {
  try {
    return JSON.stringify({ data });
  } catch {
    return undefined;
  }
}

/** The same headers, in the same order, as the app's replies have. */
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
  // As long as each character is one byte, Latin-1 writes the same, together with the head and without encoding anything.
  outgoing.end(text, length === text.length ? 'latin1' : 'utf8');
}
