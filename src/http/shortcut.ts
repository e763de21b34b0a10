import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BearerCheck } from './bearer-check.ts';
import type { GraphQLPipeline } from './graphql-pipeline.ts';
import { memoized } from './memoized.ts';
import { headerValue, NodeHead, type ServedRequest } from './received.ts';
import { type Cors, endUnread, type Reply, send, withFields } from './replies.ts';
import { bodyCutOff, readBody } from './request-body.ts';
import { stoppingOf } from './responses.ts';

/** Answers a request of one endpoint. */
export type Answer = (request: ServedRequest) => Reply | Promise<Reply>;

/** The parts of an app that the shortcut needs. */
export interface ShortcutParts {
  /** The handler of GraphQL; undefined if the app has none. */
  readonly graphql:
    | { readonly check: BearerCheck; readonly cors: Cors; readonly pipeline: GraphQLPipeline }
    | undefined;
  /** Decides for proxies whether requests can pass. Default: Hono answers them. */
  auth?: Answer;
}

/** Answers a request of Node. Returns false to leave it to Hono. */
export type Shortcut = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean;

/** A GET or POST request for GraphQL, without characters in its URL that a router decodes or a parser cuts off. */
const GRAPHQL = /^\/graphql(?:\?[!"$-~]*)?$/;
const HOST = /^([\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i;

/** True for a plain valid Host. Hono checks others. */
const isPlainHost = memoized((host) => {
  const name = HOST.exec(host)?.[1];
  const url = `http://${host}`;
  return name !== undefined && URL.canParse(url) && new URL(url).hostname === name.toLowerCase();
});

/** True for a URL of proxies' requests. All of `/auth` is for them, so that no other rules answer there. */
export function isForProxies(url: string): boolean {
  return url.startsWith('/auth') && (url.length === 5 || url[5] === '/' || url[5] === '?');
}

/**
 * The shortcut of an app: it answers proxies and ordinary GraphQL requests without Hono, which takes longer to pass a
 * request on than answering takes.
 */
export function shortcutOf(parts: ShortcutParts): Shortcut {
  const query = parts.graphql && behindBearer(parts.graphql);
  return (incoming, outgoing) => {
    const answer = isForProxies(incoming.url!) ? parts.auth : isOrdinary(incoming) ? query : undefined;
    if (answer) sendAnswer(answer, new NodeRequest(incoming, outgoing), { incoming, outgoing });
    return answer !== undefined;
  };
}

/** True for a GET or POST request for GraphQL whose head a router and a proxy interpret like we do. */
function isOrdinary({ method, url = '', rawHeaders }: IncomingMessage): boolean {
  if ((method !== 'POST' && method !== 'GET') || !GRAPHQL.test(url)) return false;
  const coding = headerValue(rawHeaders, 'transfer-encoding');
  return (coding === undefined || coding === 'chunked') && isPlainHost(headerValue(rawHeaders, 'host') ?? '');
}

/** Does the steps before the handler in the Hono app: it checks the key, and lets allowed pages read the answer. */
function behindBearer({ check, cors, pipeline }: NonNullable<ShortcutParts['graphql']>): Answer {
  return async (request) => {
    let reply: Reply;
    try {
      const entered = check.enter(request);
      const admission = entered instanceof Promise ? await entered : entered;
      reply =
        'refusal' in admission
          ? admission.refusal
          : withFields(await pipeline.answer(request, admission), admission.fields);
    } catch (error) {
      reply = pipeline.failed(error, request);
    }
    return cors.addTo(reply, request.header('origin'));
  };
}

/** The longest wait of an answer for others of its turn, in milliseconds. */
const MAX_WAIT_MS = 1;

/** The answers of this turn of the event loop. */
let waiting: (() => void)[] = [];
/** When the first of them was made. */
let since = 0;

/**
 * Sends an answer at the end of its turn of the event loop, with the others of the turn: the system then wakes their
 * reader, often a proxy, once for all of them. Waking it for each can take longer than making most answers.
 */
function sendInTurn(send: () => void): void {
  const now = performance.now();
  if (waiting.push(send) === 1) {
    since = now;
    setImmediate(sendWaiting);
  } else if (now - since >= MAX_WAIT_MS) sendWaiting();
}

function sendWaiting(): void {
  const all = waiting;
  waiting = [];
  for (const send of all) send();
}

function sendAnswer(
  answer: Answer,
  request: ServedRequest,
  { incoming, outgoing }: { incoming: IncomingMessage; outgoing: ServerResponse },
): void {
  const sendReply = (reply: Reply) => {
    if (outgoing.destroyed) return;
    try {
      endUnread(incoming, outgoing);
      send(outgoing, reply);
    } catch {
      outgoing.destroy();
    }
  };
  const settle = (reply: Reply) => sendInTurn(() => sendReply(reply));
  const reply = answer(request);
  if (reply instanceof Promise) reply.then(settle, () => outgoing.destroy());
  else settle(reply);
}

/** A request from Node. */
class NodeRequest extends NodeHead implements ServedRequest {
  readonly #outgoing: ServerResponse;
  #webRequest: Request | undefined;

  constructor(incoming: IncomingMessage, outgoing: ServerResponse) {
    super(incoming);
    this.#outgoing = outgoing;
  }

  get target(): string {
    return this.incoming.url!;
  }

  get search(): string {
    const start = this.target.indexOf('?');
    return start === -1 ? '' : this.target.slice(start);
  }

  get stopping(): AbortSignal | undefined {
    return stoppingOf(this.#outgoing);
  }

  body(): Promise<Uint8Array> {
    const { incoming } = this;
    return incoming.destroyed && !incoming.complete ? Promise.reject(bodyCutOff()) : readBody(incoming);
  }

  get webRequest(): Request {
    return (this.#webRequest ??= new Request(this.url, {
      method: this.method,
      headers: Array.from({ length: this.rawHeaders.length / 2 }, (_, index): [string, string] => [
        this.rawHeaders[2 * index]!,
        this.rawHeaders[2 * index + 1]!,
      ]),
    }));
  }

  onClientGone(listener: () => void): () => void {
    if (this.#outgoing.destroyed) listener();
    this.#outgoing.once('close', listener);
    return () => this.#outgoing.off('close', listener);
  }
}
