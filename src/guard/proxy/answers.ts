import type { IncomingMessage, InformationEvent } from 'node:http';
import { answerFraming, hasTrailers } from './framing.ts';
import { headText, reasonOf } from './head-text.ts';
import { pairsOf } from './header-names.ts';
import { answerHeaders } from './passed-headers.ts';
import type { ArrivedRequest } from './received.ts';

/**
 * Passes the upstream's answer back as it arrives. One that breaks off breaks off for the client, too: it must not look
 * whole.
 * @param more headers that it is to have besides, names and values in turn
 * @throws Error if it cannot be passed on as it is, before anything of it was
 */
export function passAnswer(
  answer: IncomingMessage,
  { incoming, outgoing }: ArrivedRequest,
  more: readonly string[],
): void {
  const { statusCode = 0, statusMessage = '', rawHeaders } = answer;
  const framing = statusCode < 200 ? undefined : answerFraming(answer, incoming);
  if (!framing) throw new Error(`The upstream answered with status ${statusCode}, or with an unclear length.`);
  outgoing.writeHead(statusCode, reasonOf(statusMessage), answerHeaders(rawHeaders, framing, more));
  answer.pipe(outgoing, { end: false });
  answer.once('end', () => {
    if (hasTrailers(framing)) outgoing.addTrailers(pairsOf(answer.rawTrailers));
    outgoing.end();
  });
  answer.once('close', () => answer.complete || outgoing.destroy());
  // The head must not wait for a body that is still to come.
  setImmediate(() => answer.readableDidRead || outgoing.destroyed || outgoing.flushHeaders());
}

/** Passes an informational answer back, other than 100 Continue. HTTP/1.0 has none (RFC 9110, section 15.2). */
export function passInformation(information: InformationEvent, { incoming, outgoing }: ArrivedRequest): void {
  const { statusCode, statusMessage, rawHeaders } = information;
  if (incoming.httpVersionMinor === 0 || outgoing.headersSent) return;
  // Node's own methods send only some. On a connection where an earlier request is not answered yet there is no socket.
  outgoing.socket?.write(headText(statusCode, statusMessage, answerHeaders(rawHeaders)), 'latin1');
}
