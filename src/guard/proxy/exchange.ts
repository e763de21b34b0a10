import type { ClientRequest, IncomingMessage, InformationEvent } from 'node:http';
import { Transform } from 'node:stream';
import { type RateLimitFields, withFields } from '../../http/rate-limit-fields.ts';
import type { Reply } from '../../http/replies.ts';
import { passAnswer, passInformation } from './answers.ts';
import { type Framing, hasBody } from './framing.ts';
import { badGateway, ENDLESS, gatewayTimeout, refuse, requestTimeout } from './replies.ts';
import type { ArrivedRequest, BareConnection } from './received.ts';
import type { Upstream, UpstreamRequest } from './upstream.ts';

/** A request that is passed on. */
export interface PassedRequest extends ArrivedRequest {
  /** As the upstream gets it. */
  readonly request: UpstreamRequest;
  readonly framing: Framing;
  /** Whether the client waits for `100 Continue` before it sends its body. */
  readonly expectsContinue: boolean;
  /** The trailers that the upstream gets. */
  trailers(rawTrailers: readonly string[]): [string, string][];
  readonly switching: Switching | undefined;
  /** What the client is told of the limits of its key. */
  readonly fields: RateLimitFields | undefined;
  readonly requestId: string | undefined;
  /** The reply to it if its key, as that is now, may not go on with it. */
  readonly refusedNow: () => Reply | undefined | Promise<Reply | undefined>;
}

/** The protocol that the client asks to switch to. */
export interface Switching {
  readonly protocol: string;
  /** Takes the upstream's connection once that has switched. */
  switched(answer: IncomingMessage, connection: BareConnection): void;
}

/** Where requests are passed on to. */
export interface ExchangeOptions {
  readonly upstream: Upstream;
  /** How long the upstream may take to begin its answer, and the client to go on with its body, in milliseconds. */
  readonly timeoutMs: number;
  /** Is told why an upstream did not answer. */
  failed(error: unknown, requestId?: string): void;
}

/** Requests that may be repeated when nobody knows whether the upstream has got them (RFC 9110, section 9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);
/** How a connection fails that the upstream has closed while it was idle. */
const CLOSED: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE']);
/** How long a client may go on with a body after the answer to it. */
const LINGER_MS = 5000;

/** Passes one request on, and its answer back, both as they arrive: each side waits for the other to take the data. */
export class Exchange {
  readonly #passed: PassedRequest;
  readonly #options: ExchangeOptions;
  #timer!: NodeJS.Timeout;
  #request!: ClientRequest;
  /** Whether it is settled what the client is answered. */
  #isAnswered = false;
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
    else this.#request.end();
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
    const request = this.#options.upstream.open(this.#passed.request, isNew);
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

  /** Whether a request has met the end of a kept connection, and may be sent over another one. */
  #isRepeatable({ code }: NodeJS.ErrnoException): boolean {
    const { request, framing } = this.#passed;
    const wasClosed = this.#request.reusedSocket && CLOSED.has(code);
    return wasClosed && !hasBody(framing) && IDEMPOTENT.has(request.method);
  }

  #passBody(): void {
    const { incoming } = this.#passed;
    const request = this.#request;
    incoming.on('data', () => this.#isAnswered || this.#timer.refresh());
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
    // What the upstream does not take any more is dropped.
    request.once('close', () => incoming.unpipe().resume());
  }

  /** Goes on, unless the key has lost meanwhile what the request needs: then no more of a body is passed on, either. */
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
    // Its client may now send a body, or leave it out.
    if (this.#passed.expectsContinue && !this.#hasContinued) this.#passed.closeAfter();
    try {
      passAnswer(answer, this.#passed, Object.entries(this.#passed.fields ?? {}).flat());
    } catch (error) {
      return this.#fail(error);
    }
    this.#settle();
  }

  #switch(answer: IncomingMessage, connection: BareConnection): void {
    const { outgoing, switching } = this.#passed;
    if (answer.headers.upgrade?.toLowerCase() !== switching?.protocol.toLowerCase()) {
      connection.socket.destroy();
      return this.#fail(new Error('The upstream switched to a protocol that nobody asked for.'));
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
