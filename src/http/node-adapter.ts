import type { IncomingMessage, ServerResponse } from 'node:http';
import { answersOfTurn } from './answers-of-turn.ts';
import { bodyTooLarge, MAX_BODY_BYTES } from './graphql-request.ts';
import type { GraphQLPipeline } from './graphql-pipeline.ts';
import { bodyCutOff, type GraphQLRequest } from './graphql-request.ts';
import { memoized } from './memoized.ts';
import { NodeHead } from './node-head.ts';
import { send } from './replies.ts';
import { readHead, type RequestHead } from './request-head.ts';

/**
 * Hands a request as Node has it to the pipeline: what Hono does with one takes longer than to answer it. Leaves out
 * those whose head is not an ordinary one, which Hono's adapter hands on.
 * @returns whether it was handed on
 */
export function answerByNode(pipeline: GraphQLPipeline, incoming: IncomingMessage, outgoing: ServerResponse): boolean {
  const head = readHead(incoming.rawHeaders);
  if (!head || !isOrdinary(incoming.method, head)) return false;
  if (head.transferEncoding !== undefined) outgoing.once('finish', () => throwAwayRest(incoming));
  pipeline.handle(new NodeRequest(incoming, outgoing, head)).then(
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

/**
 * Reads a body. Its listeners go with it: a connection that is kept has its request until the next one, and what these
 * know would stay in memory as long.
 */
function readBody(incoming: IncomingMessage): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_BODY_BYTES) stop(() => reject(bodyTooLarge()));
    };
    const onEnd = () => stop(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    const onError = () => stop(() => reject(bodyCutOff()));
    const stop = (settle: () => void) => {
      incoming.off('data', onData).off('end', onEnd).off('error', onError);
      settle();
    };
    incoming.on('data', onData).on('end', onEnd).on('error', onError);
  });
}

/** A GET or POST request as Node has it. */
class NodeRequest extends NodeHead implements GraphQLRequest {
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

  get method(): string {
    return this.incoming.method!;
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
