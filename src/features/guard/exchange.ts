import * as http from 'node:http';
import type { ClientRequest, IncomingMessage, InformationEvent } from 'node:http';
import * as https from 'node:https';
import { isIP } from 'node:net';
import { type Readable, Transform } from 'node:stream';
import {
  type ArrivedRequest,
  badGateway,
  type BareConnection,
  ENDLESS,
  gatewayTimeout,
  type ReceivedRequest,
  refuse,
  requestTimeout,
} from './arrived-request.ts';
import {
  answerFraming,
  answerHeaders,
  hasBody,
  hasTrailers,
  headText,
  isEncoded,
  lengthless,
  pairsOf,
  reasonOf,
} from './passed-headers.ts';
import type { Sent } from './sent-credentials.ts';
import { type RateLimitFields, type Reply, withFields } from '../../http/index.ts';
import type { UpstreamAddress } from '../routes/index.ts';

/** The target of an answer, and the changes to make to it. */
type Returning = ArrivedRequest & Pick<PassedRequest, 'sent' | 'lookThrough'>;

/**
 * Passes the upstream's answer back as it arrives. One that breaks off breaks off for the client, too: it must not look
 * whole.
 * @param more headers that it is to have besides, names and values in turn
 * @throws Error if it cannot be passed on as it is, before anything of it was
 */
function passAnswer(answer: IncomingMessage, returning: Returning, more: readonly string[]): void {
  const { incoming, outgoing, sent, lookThrough } = returning;
  const { statusCode = 0, statusMessage = '', rawHeaders } = answer;
  const whole = statusCode < 200 ? undefined : answerFraming(answer, incoming);
  const looked = whole && hasBody(whole) && lookThrough ? lookThrough(answer) : answer;
  const framing = looked === answer ? whole : lengthless(incoming);
  if (!framing) throw new Error(`The upstream answered with status ${statusCode}, or with an unclear length.`);
  outgoing.writeHead(statusCode, reasonOf(sent.hide(statusMessage)), answerHeaders(rawHeaders, sent, framing, more));
  const body: Readable = isEncoded(rawHeaders) ? looked : sent.hideIn(looked);
  for (const stream of new Set([looked, body])) stream.once('error', () => outgoing.destroy());
  body.pipe(outgoing, { end: false });
  body.once('end', () => {
    if (hasTrailers(framing))
      outgoing.addTrailers(
        pairsOf(answer.rawTrailers).map(([name, value]): [string, string] => [name, sent.hide(value)]),
      );
    outgoing.end();
  });
  answer.once('close', () => answer.complete || outgoing.destroy());
  // The head must not wait for a body that is still to come.
  setImmediate(() => answer.readableDidRead || outgoing.destroyed || outgoing.flushHeaders());
}

/** Passes an informational answer back, other than 100 Continue. HTTP/1.0 has none (RFC 9110, section 15.2). */
function passInformation(information: InformationEvent, { incoming, outgoing, sent }: Returning): void {
  const { statusCode, statusMessage, rawHeaders } = information;
  if (incoming.httpVersionMinor === 0 || outgoing.headersSent) return;
  // Node's own methods send only some. On a connection where an earlier request is not answered yet there is no socket.
  const head = headText(statusCode, sent.hide(statusMessage), answerHeaders(rawHeaders, sent));
  outgoing.socket?.write(head, 'latin1');
}

/** A request as it is sent to the upstream. */
interface UpstreamRequest {
  readonly method: string;
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

/** Time to keep an idle connection: many servers close theirs after 5 seconds without notice. */
const IDLE_MS = 4000;
/** Maximum size of the headers of an answer, in bytes. */
const MAX_HEADER_BYTES = 64 * 1024;

/** Errors when writing to a connection that the other side has closed. */
const CLOSED: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE']);

/**
 * Keeps reading connections that can no longer be written to. A server that has answered and does not want the rest of
 * a body closes the connection: writing fails first, but its answer has arrived (RFC 9112, section 9.6). Further writes
 * are dropped. Without an answer, reading fails as well.
 */
function hearingOut<Kind extends http.Agent>(agent: Kind): Kind {
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options, done) => {
    const socket = connect(options, done);
    for (const write of ['_write', '_writev'] as const) {
      const real = socket![write]!.bind(socket) as (...args: unknown[]) => void;
      socket![write] = (...args: unknown[]) => {
        const settle = args.pop() as (error?: NodeJS.ErrnoException | null) => void;
        real(...args, (error?: NodeJS.ErrnoException | null) => settle(error && CLOSED.has(error.code) ? null : error));
      };
    }
    return socket;
  };
  return agent;
}

/** The connections to all upstreams, which are kept for further requests, each for those to the same one. */
export class UpstreamConnections {
  readonly #most: number;
  /** Each is made on use: that for TLS takes memory. */
  readonly #agents = new Map<string, http.Agent>();

  /** @param most connections at a time for each protocol; further requests wait */
  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Opens a request. The upstream may close a kept connection at this very moment.
   * @param isNew forces a new connection
   */
  open(address: UpstreamAddress, request: UpstreamRequest, isNew: boolean): http.ClientRequest {
    const { protocol } = address;
    const { request: send } = protocol === 'https:' ? https : http;
    const servername = 'host' in address && isIP(address.host) === 0 ? address.host : '';
    const sent = send({
      ...address,
      ...(protocol === 'https:' && { servername, rejectUnauthorized: true }),
      maxHeaderSize: MAX_HEADER_BYTES,
      ...request,
      agent: this.#agent(protocol, isNew),
    });
    // Node would otherwise drop headers after the 1,000th.
    sent.maxHeadersCount = 0;
    return sent;
  }

  /** Closes all of them. */
  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
  }

  #agent(protocol: UpstreamAddress['protocol'], isNew: boolean): http.Agent {
    const use = `${protocol} ${isNew}`;
    const made = this.#agents.get(use);
    if (made) return made;
    const { Agent } = protocol === 'https:' ? https : http;
    const kept = isNew ? { maxFreeSockets: 0 } : { timeout: IDLE_MS };
    const agent = hearingOut(new Agent({ ...kept, keepAlive: true, maxTotalSockets: this.#most }));
    this.#agents.set(use, agent);
    return agent;
  }
}

/** A request that is passed on. */
export interface PassedRequest extends ArrivedRequest, Pick<ReceivedRequest, 'framing' | 'expectsContinue'> {
  /** As the upstream gets it. */
  readonly request: UpstreamRequest;
  /** The trailers that the upstream gets. */
  trailers(rawTrailers: readonly string[]): [string, string][];
  readonly switching: Switching | undefined;
  /** Headers about the limits of the client's key. */
  readonly fields: RateLimitFields | undefined;
  /** The upstream's own credentials, which the client must not see. */
  readonly sent: Sent;
  /** Its body, if it was already read. */
  readonly body?: Buffer | undefined;
  /** Filters the body of an answer for the client. @throws Error if it cannot be read */
  readonly lookThrough?: ((answer: IncomingMessage) => Readable) | undefined;
  readonly requestId: string | undefined;
  /** The reply to send if its key no longer allows the request. */
  readonly refusedNow: () => Reply | undefined | Promise<Reply | undefined>;
}

/** The protocol that the client asks to switch to. */
interface Switching {
  readonly protocol: string;
  /** Takes the upstream's connection once that has switched. */
  switched(answer: IncomingMessage, connection: BareConnection): void;
}

/** Options for passing requests on. */
interface ExchangeOptions {
  readonly address: UpstreamAddress;
  readonly connections: UpstreamConnections;
  /**
   * Time-out for the upstream to start and continue its answer, and for the client to continue its body, in
   * milliseconds.
   */
  readonly timeoutMs: number;
  /** Called with the reason that an upstream did not answer. */
  failed(error: unknown, requestId?: string): void;
}

/**
 * Methods that can be repeated if it is unknown whether the upstream received the request (RFC 9110, section 9.2.2).
 */
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);
/** Time for a client to finish its body after the answer, in milliseconds. */
const LINGER_MS = 5000;
/** Minimum rate of a body that takes longer than the time-out, in bytes per millisecond. */
const MIN_BODY_RATE = 0.5;
/** Time-outs after which a client that does not read the answer is cut off. */
const MAX_BLOCKED = 10;
/** An answer that pauses by design. */
const EVENT_STREAM = /^text\/event-stream(?:;|$)/i;
/** Interval of keep-alive probes to a silent upstream, in milliseconds. */
const PROBE_MS = 60_000;

/** Passes one request on, and its answer back, both as they arrive: each side waits for the other to take the data. */
export class Exchange {
  readonly #passed: PassedRequest;
  readonly #options: ExchangeOptions;
  #timer!: NodeJS.Timeout;
  #request!: ClientRequest;
  /** The answer to the client is decided. */
  #isAnswered = false;
  /** The upstream's answer, the bytes received so far, and how often the client did not read them. */
  #passing: { answer: IncomingMessage; bytes: number; blocked: number } | undefined;
  #hasContinued = false;

  constructor(passed: PassedRequest, options: ExchangeOptions) {
    this.#passed = passed;
    this.#options = options;
  }

  /** Sends the request to the upstream. */
  start(): void {
    const { outgoing, framing } = this.#passed;
    this.#timer = setTimeout(() => this.#expire(), this.#options.timeoutMs);
    this.#request = this.#open(false);
    outgoing.once('close', () => this.#leave());
    if (hasBody(framing)) this.#passBody();
    else this.#request.end(this.#passed.body);
  }

  /** Ends it: with this reply, if its answer has not begun. */
  end(refusal?: Reply): void {
    const { incoming, outgoing, switching } = this.#passed;
    if (refusal && !this.#isAnswered) this.#refuse(refusal);
    else (switching ? incoming.socket : outgoing).destroy();
  }

  /** Gives the client this answer of ours. */
  #refuse(reply: Reply, framing = this.#passed.framing): void {
    const { incoming, outgoing, fields } = this.#passed;
    this.#settle();
    incoming.unpipe();
    this.#request.destroy();
    if (!outgoing.destroyed) refuse(this.#passed, withFields(reply, fields), framing);
  }

  #open(isNew: boolean): ClientRequest {
    const { connections, address } = this.#options;
    const request = connections.open(address, this.#passed.request, isNew);
    request.once('response', (answer) => this.#answer(answer));
    request.on('information', (information) => this.#inform(information));
    request.once('upgrade', (answer, socket, head) => this.#switch(answer, { socket, head }));
    request.on('error', (error: NodeJS.ErrnoException) => {
      if (this.#isAnswered || this.#passed.outgoing.destroyed) return;
      if (!isNew && this.#isRepeatable(error)) this.#request = this.#open(true).end();
      else this.#fail(error);
    });
    return request;
  }

  /** Checks whether a request failed on a closing kept connection and can be sent over a new one. */
  #isRepeatable({ code }: NodeJS.ErrnoException): boolean {
    const { request, framing } = this.#passed;
    const wasClosed = this.#request.reusedSocket && CLOSED.has(code);
    return wasClosed && !hasBody(framing) && !this.#passed.body && IDEMPOTENT.has(request.method);
  }

  #passBody(): void {
    const { incoming } = this.#passed;
    const request = this.#request;
    let [waitedMs, bytes, last] = [0, 0, performance.now()];
    incoming.on('data', (chunk: Buffer) => {
      if (this.#isAnswered) return;
      const now = performance.now();
      [waitedMs, bytes, last] = [waitedMs + now - last, bytes + chunk.length, now];
      if (waitedMs > this.#options.timeoutMs + bytes / MIN_BODY_RATE) this.#refuse(requestTimeout(), ENDLESS);
      else this.#timer.refresh();
    });
    // The time-out of the client starts once the upstream has taken its bytes.
    request.on('drain', () => (last = performance.now()));
    const body = new Transform({
      transform: (chunk, _encoding, done) => this.#unlessRefused(() => done(null, chunk)),
      flush: (done) => this.#unlessRefused(done),
    });
    incoming.pipe(body).pipe(request, { end: false });
    // The head must not wait for a body that is still to come.
    setImmediate(() => incoming.readableDidRead || request.destroyed || request.flushHeaders());
    body.once('end', () => {
      request.addTrailers(this.#passed.trailers(incoming.rawTrailers));
      request.end();
    });
    // Drops the rest of the body once the upstream stops reading.
    request.once('close', () => incoming.unpipe().resume());
  }

  /** Continues unless the key has lost the permission. If so, no more of the body is passed on either. */
  #unlessRefused(goOn: () => void): void {
    const settle = (refusal: Reply | undefined) => (refusal ? this.end(refusal) : goOn());
    try {
      const refusal = this.#passed.refusedNow();
      if (refusal instanceof Promise) refusal.then(settle).catch(() => this.end());
      else settle(refusal);
    } catch {
      this.end();
    }
  }

  #inform(information: InformationEvent): void {
    const { outgoing, expectsContinue } = this.#passed;
    if (this.#isAnswered) return;
    if (information.statusCode !== 100) return passInformation(information, this.#passed);
    if (expectsContinue && !this.#hasContinued) outgoing.writeContinue();
    this.#hasContinued = true;
  }

  #answer(answer: IncomingMessage): void {
    // The client can now send its body or leave it out, so the connection cannot be reused.
    if (this.#passed.expectsContinue && !this.#hasContinued) this.#passed.closeAfter();
    try {
      passAnswer(answer, this.#passed, Object.entries(this.#passed.fields ?? {}).flat());
    } catch (error) {
      return this.#fail(error);
    }
    this.#settle();
    const { socket, headers } = answer;
    if (EVENT_STREAM.test(headers['content-type'] ?? '')) return void socket.setKeepAlive(true, PROBE_MS);
    this.#passing = { answer, bytes: socket.bytesRead, blocked: 0 };
    this.#timer = setTimeout(() => this.#expirePassing(), this.#options.timeoutMs);
  }

  /** Breaks off a stalled answer, so that the client does not take it for complete. */
  #expirePassing(): void {
    const { outgoing, requestId } = this.#passed;
    const passing = this.#passing!;
    const { bytesRead } = passing.answer.socket;
    const isBlocked = outgoing.writableNeedDrain || passing.answer.complete;
    const goesOn = isBlocked ? (passing.blocked += 1) < MAX_BLOCKED : bytesRead > passing.bytes;
    if (!isBlocked) passing.blocked = 0;
    passing.bytes = bytesRead;
    if (goesOn) return void this.#timer.refresh();
    if (!isBlocked) this.#options.failed(new Error('The upstream did not go on with its answer.'), requestId);
    outgoing.destroy();
  }

  #switch(answer: IncomingMessage, connection: BareConnection): void {
    const { outgoing, switching } = this.#passed;
    if (answer.headers.upgrade?.toLowerCase() !== switching?.protocol.toLowerCase()) {
      connection.socket.destroy();
      return this.#fail(new Error('The upstream switched to a protocol that was not requested.'));
    }
    outgoing.once('close', () => connection.socket.destroy());
    this.#unlessRefused(() => {
      if (outgoing.destroyed) return;
      this.#settle();
      switching!.switched(answer, connection);
    });
  }

  #settle(): void {
    this.#isAnswered = true;
    clearTimeout(this.#timer);
  }

  #fail(error: unknown): void {
    this.#options.failed(error, this.#passed.requestId);
    this.#refuse(badGateway());
  }

  #expire(): void {
    if (this.#isAnswered) return;
    const { incoming, framing, expectsContinue } = this.#passed;
    const mayBeSent = !expectsContinue || this.#hasContinued;
    const isMissing = hasBody(framing) && !incoming.complete && !this.#request.writableNeedDrain;
    if (isMissing && mayBeSent) return this.#refuse(requestTimeout(), ENDLESS);
    this.#options.failed(new Error('The upstream took too long to answer.'), this.#passed.requestId);
    this.#refuse(gatewayTimeout());
  }

  /** The client has its answer, or is gone. */
  #leave(): void {
    const { incoming, outgoing } = this.#passed;
    clearTimeout(this.#timer);
    if (!outgoing.writableFinished) return void this.#request.destroy();
    if (incoming.complete) return;
    const linger = setTimeout(() => incoming.socket.destroy(), LINGER_MS);
    incoming.once('close', () => {
      clearTimeout(linger);
      if (!incoming.complete) this.#request.destroy();
    });
  }
}
