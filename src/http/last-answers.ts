import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { latestResponse } from './unread-answers.ts';

/**
 * Lets a server that stops tell each client with the next answer that its connection ends there (RFC 9112, 9.6), so
 * that no further request is sent into one that is about to be closed. Requests that were sent behind each other are
 * answered first.
 */
export class LastAnswers {
  readonly #of = new WeakMap<Duplex, ServerResponse>();

  /** @param open what carries the requests of the connections that are open */
  constructor(server: Server, open: Iterable<Duplex>) {
    const mark = (incoming: IncomingMessage, outgoing: ServerResponse) => this.#mark(incoming.socket, outgoing);
    for (const event of ['request', 'checkContinue', 'checkExpectation']) server.prependListener(event, mark);
    for (const socket of open) {
      const response = latestResponse(socket);
      if (response && !response.writableFinished) this.#mark(socket, response);
    }
  }

  #mark(socket: Duplex, response: ServerResponse): void {
    const previous = this.#of.get(socket);
    if (previous && !previous.headersSent) previous.shouldKeepAlive = true;
    // Too late, or the client itself has asked for it.
    if (response.headersSent || !response.shouldKeepAlive) return;
    response.shouldKeepAlive = false;
    this.#of.set(socket, response);
  }
}
