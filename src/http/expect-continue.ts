import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Tells a client that waits for it to send its body (RFC 9110, section 10.1.1) once that is to be read. One that is
 * refused before gets its answer instead, and the connection is closed: whether the body still comes is unknown.
 */
export function continueWhenRead(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const read = incoming._read.bind(incoming);
  const { shouldKeepAlive } = outgoing;
  outgoing.shouldKeepAlive = false;
  incoming._read = (size) => {
    incoming._read = read;
    // What was not read is thrown away after the answer.
    if (!outgoing.headersSent && !outgoing.destroyed) {
      outgoing.shouldKeepAlive = shouldKeepAlive;
      outgoing.writeContinue();
    }
    read(size);
  };
}
