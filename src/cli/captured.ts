import type { Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';

/** Whether a program has replaced the `write` of a stream of its process, as tests do to capture what is written. */
export function isCaptured(stream: Writable): boolean {
  return stream.write !== (Object.getPrototypeOf(stream) as Writable).write;
}

/**
 * Writes to a stream that is captured, until the text is where it goes. Not every replacement calls back, so it is
 * waited for only as long as the stream itself has something left to write.
 * @throws what the stream reports
 */
export async function writeCaptured(stream: Writable, text: string): Promise<void> {
  let failure: Error | null | undefined;
  const written = new Promise<void>((resolve) => {
    stream.write(text, 'utf8', (error) => {
      failure = error;
      resolve();
    });
  });
  if (stream.writableLength > 0) await written;
  // What was written at once is reported in the next turn.
  else await setImmediate();
  if (failure) throw failure;
}
