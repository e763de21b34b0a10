import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context, Handler, Hono, MiddlewareHandler } from 'hono';
import { findTargetHandler } from 'hono/utils/handler';
import { getPath, getPathNoStrict } from 'hono/utils/url';
import { admissionOf, type BearerEnv } from './bearer-auth.ts';
import type { GraphQLPipeline, GraphQLRequest } from './graphql-pipeline.ts';
import { bodyCutOff, MAX_BODY_BYTES, readBody, readFetched } from './request-body.ts';
import { HonoHead, memoized, NodeHead, readHead, type RequestHead, type RequestNotes } from './received.ts';
import { type Cors, type Reply, respond, send } from './replies.ts';
import { stoppingOf } from './watched-request.ts';

/** Hands requests that `bearerAuth` has accepted to the pipeline. */
function answerByHono(pipeline: GraphQLPipeline): Handler {
  return async (c) => respond(c, await pipeline.answer(new HonoRequest(c), admissionOf(c)));
}

/** A request as Hono has it. */
class HonoRequest extends HonoHead implements DirectRequest {
  readonly head: RequestHead;

  constructor(c: Context) {
    super(c);
    this.head = {
      accept: c.req.header('accept'),
      contentType: c.req.header('content-type'),
      contentLength: c.req.header('content-length'),
      contentEncoding: c.req.header('content-encoding'),
    };
  }

  get search(): string {
    return new URL(this.c.req.raw.url).search;
  }

  async body(): Promise<Uint8Array> {
    const { raw } = this.c.req;
    if (this.head.contentLength === undefined) return readFetched(raw);
    try {
      // One that is read at once takes no stream.
      return new Uint8Array(await raw.arrayBuffer());
    } catch {
      throw bodyCutOff();
    }
  }

  get webRequest(): Request {
    return this.c.req.raw;
  }

  onClientGone(listener: () => void): () => void {
    const { signal } = this.c.req.raw;
    if (signal.aborted) listener();
    signal.addEventListener('abort', listener, { once: true });
    return () => signal.removeEventListener('abort', listener);
  }
}

/** A request, whichever server it came by. */
export interface DirectRequest extends GraphQLRequest {
  /** Whether its client has shown a certificate that is trusted, where one is asked for. */
  readonly hasCertificate: boolean;
  /** Aborted once the server stops, so that an answer may be held for long; undefined where nobody tells. */
  readonly stopping?: AbortSignal | undefined;
}

/** What answers the requests of a route. */
interface RequestAnswerer {
  handle(request: DirectRequest): Promise<Reply>;
}

/** By the last handler of a route: all that it has, and what does the same without Hono. */
const answerers = new WeakMap<object, { handlers: readonly object[]; answerer: RequestAnswerer }>();

/** The handlers of a GraphQL route. The pipeline does what they do. */
export function handlersOf(
  pipeline: GraphQLPipeline,
  cors: MiddlewareHandler,
  auth: MiddlewareHandler<BearerEnv>,
): [MiddlewareHandler, MiddlewareHandler<BearerEnv>, Handler] {
  const answer = answerByHono(pipeline);
  answerers.set(answer, { handlers: [cors, auth, answer], answerer: pipeline });
  return [cors, auth, answer];
}

/** The handler of a route that nothing stands in front of. */
export function directHandler(handle: (request: DirectRequest) => Promise<Reply>): Handler {
  const handler: Handler = async (c) => respond(c, await handle(new HonoRequest(c)));
  answerers.set(handler, { handlers: [handler], answerer: { handle } });
  return handler;
}

/** The handler of a route behind `allowOrigins`, and of nothing else, that answers by what is noted of a request. */
export function openHandler(
  answer: (notes: RequestNotes | undefined) => Promise<Reply>,
  cors: Cors,
  allowOrigins: MiddlewareHandler,
): Handler {
  const handler: Handler = async (c) => respond(c, await answer(new HonoHead(c).notes));
  const handle = async ({ notes, head }: GraphQLRequest) => cors.addTo(await answer(notes), head.origin);
  answerers.set(handler, { handlers: [allowOrigins, handler], answerer: { handle } });
  return handler;
}

/** URLs without anything in their path that a router would decode, or in their query that would end it. */
const PLAIN_URL = /^\/[\w/-]*(?:\?[!"$-~]*)?$/;

/** Finds what answers at a path without Hono, if that can. */
type FindAnswerer = (path: string) => { answerer: RequestAnswerer | undefined };

/** The routes of an app, or of one that it is mounted in, whose handlers are all done without Hono. */
export class DirectRoutes {
  readonly #isPlain: boolean;
  readonly #at: Readonly<Record<'GET' | 'POST', FindAnswerer>>;

  // oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
  constructor(app: Hono<any>) {
    // An app may route by more than the path, such as by the host.
    this.#isPlain = app.getPath === getPath || app.getPath === getPathNoStrict;
    const finder = (method: string) => memoized((path) => ({ answerer: answererAt(app, method, path) }));
    this.#at = { GET: finder('GET'), POST: finder('POST') };
  }

  /** What answers a GET or POST request; undefined for those that Hono is to answer, and for all others. */
  find({ method, url = '' }: IncomingMessage): RequestAnswerer | undefined {
    if (!this.#isPlain || (method !== 'POST' && method !== 'GET') || !PLAIN_URL.test(url)) return undefined;
    const end = url.indexOf('?');
    return this.#at[method](end === -1 ? url : url.slice(0, end)).answerer;
  }
}

// oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
function answererAt(app: Hono<any>, method: string, path: string): RequestAnswerer | undefined {
  let matched;
  try {
    [matched] = app.router.match(method, path);
  } catch {
    return undefined; // Hono's listener reports it.
  }
  const found = matched.map(([[handler]]) => findTargetHandler(handler));
  const { handlers = [], answerer } = answerers.get(found.at(-1) ?? {}) ?? {};
  return handlers.length === found.length && handlers.every((handler, at) => handler === found[at])
    ? answerer
    : undefined;
}

/** After a turn with so few answers, each is sent at once: its reader works on it meanwhile. */
const FEW = 4;
/** How long an answer waits at most while others are made, in milliseconds. */
const MAX_WAIT_MS = 1;

/**
 * Sends the answers of a busy server at the end of the turn of the event loop in which they are made, together: the
 * system wakes their reader, often one proxy, once for all that are sent in a row. To wake it for each can take longer
 * than to make most answers.
 */
export class AnswersOfTurn {
  readonly #now: () => number;
  /** How many were made in this turn, and in the latest before it that had any. */
  #made = 0;
  #madeBefore = 0;
  #waiting: (() => void)[] = [];
  /** When the first of them was made. */
  #since = 0;

  /** @param now in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Sends an answer now or soon. Nothing is sent to a client that has gone by then. */
  add(outgoing: ServerResponse, send: () => void): void {
    const sendIfWanted = () => {
      try {
        if (!outgoing.destroyed) send();
      } catch {
        outgoing.destroy();
      }
    };
    if (this.#isBusy()) this.#wait(sendIfWanted);
    else sendIfWanted();
  }

  /** An answer that somebody else sends, when it is to be sent. */
  hold<Answer>(answer: Answer): Answer | Promise<Answer> {
    return this.#isBusy() ? new Promise((resolve) => this.#wait(() => resolve(answer))) : answer;
  }

  /** Counts an answer. Whether it waits. */
  #isBusy(): boolean {
    if (this.#made === 0) setImmediate(this.#endTurn);
    this.#made += 1;
    return this.#madeBefore > FEW;
  }

  #wait(send: () => void): void {
    const now = this.#now();
    if (this.#waiting.length === 0) this.#since = now;
    this.#waiting.push(send);
    if (now - this.#since >= MAX_WAIT_MS) this.#sendWaiting();
  }

  readonly #endTurn = (): void => {
    this.#madeBefore = this.#made;
    this.#made = 0;
    this.#sendWaiting();
  };

  #sendWaiting(): void {
    const all = this.#waiting;
    this.#waiting = [];
    for (const send of all) send();
  }
}

/** Those of this process. */
export const answersOfTurn = new AnswersOfTurn();

/**
 * Hands a request on as Node has it: what Hono does with one takes longer than to answer it. Leaves out those whose
 * head is not an ordinary one, which Hono's adapter hands on.
 * @returns whether it was handed on
 */
export function answerByNode(answerer: RequestAnswerer, incoming: IncomingMessage, outgoing: ServerResponse): boolean {
  const head = readHead(incoming.rawHeaders);
  if (!head || !isOrdinary(incoming.method, head)) return false;
  if (head.transferEncoding !== undefined) outgoing.once('finish', () => throwAwayRest(incoming));
  answerer.handle(new NodeRequest(incoming, outgoing, head)).then(
    (reply) => answersOfTurn.add(outgoing, () => send(outgoing, reply)),
    () => outgoing.destroy(),
  );
  return true;
}

const HOST = /^([\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i;

/** Whether a Host is surely valid. Of others, Hono finds that out. */
const isPlainHost = memoized((host) => {
  const name = HOST.exec(host)?.[1];
  const url = `http://${host}`;
  return name !== undefined && URL.canParse(url) && new URL(url).hostname === name.toLowerCase();
});

/** Whether a head has a plain host, and a body, if there is to be one, that may be read. */
function isOrdinary(method: string | undefined, head: RequestHead): boolean {
  return isPlainHost(head.host ?? '') && (method === 'POST' ? hasOrdinaryBody(head) : hasNoBody(head));
}

function hasOrdinaryBody({ contentLength, transferEncoding }: RequestHead): boolean {
  return transferEncoding === undefined
    ? Number(contentLength) <= MAX_BODY_BYTES
    : transferEncoding.toLowerCase() === 'chunked' && contentLength === undefined;
}

function hasNoBody({ contentLength, transferEncoding }: RequestHead): boolean {
  return contentLength === undefined && transferEncoding === undefined;
}

/** How long the rest of a body may come after the answer, in milliseconds. Cut off, a client might miss that. */
const LINGER_MS = 500;

/** Reads the rest of a body in chunks that was refused, and closes the connection if that does not end. */
function throwAwayRest(incoming: IncomingMessage): void {
  if (incoming.complete) return;
  incoming.resume();
  setTimeout(() => incoming.complete || incoming.socket.destroySoon(), LINGER_MS).unref();
}

/** A GET or POST request as Node has it. */
class NodeRequest extends NodeHead implements DirectRequest {
  readonly head: RequestHead;
  readonly #outgoing: ServerResponse;
  #webRequest: Request | undefined;

  constructor(incoming: IncomingMessage, outgoing: ServerResponse, head: RequestHead) {
    super(incoming);
    this.#outgoing = outgoing;
    this.head = head;
  }

  override header(name: string): string | undefined {
    return name === 'authorization' ? this.head.authorization : super.header(name);
  }

  get search(): string {
    const { url = '' } = this.incoming;
    const start = url.indexOf('?');
    return start === -1 ? '' : url.slice(start);
  }

  body(): Promise<Uint8Array> {
    const { incoming } = this;
    return incoming.destroyed && !incoming.complete ? Promise.reject(bodyCutOff()) : readBody(incoming);
  }

  get stopping(): AbortSignal | undefined {
    return stoppingOf(this.#outgoing);
  }

  get webRequest(): Request {
    return (this.#webRequest ??= requestOf(this.incoming));
  }

  onClientGone(listener: () => void): () => void {
    if (this.#outgoing.destroyed) listener();
    this.#outgoing.once('close', listener);
    return () => this.#outgoing.off('close', listener);
  }
}

function requestOf({ method, url, rawHeaders, socket }: IncomingMessage): Request {
  const headers = new Headers();
  for (let index = 0; index < rawHeaders.length; index += 2) headers.append(rawHeaders[index]!, rawHeaders[index + 1]!);
  const scheme = 'encrypted' in socket ? 'https' : 'http';
  return new Request(`${scheme}://${headers.get('host')}${url}`, { method: method!, headers });
}
