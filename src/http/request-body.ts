import type { IncomingMessage } from 'node:http';
import { RequestRefused } from './replies.ts';

/** The most that a body may have, in bytes. */
export const MAX_BODY_BYTES = 1024 * 1024;
/** How deep arrays and objects in JSON may nest. */
const MAX_NESTING = 64;

/** A body that comes in pieces, as long as it is not too long, in bytes. @throws RequestRefused */
export async function collectBody(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  max = MAX_BODY_BYTES,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of body) {
    size += piece.byteLength;
    if (size > max) throw bodyTooLarge(max);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/**
 * Reads a body. Its listeners go with it: a connection that is kept has its request until the next one, and what these
 * know would stay in memory as long.
 * @param max the most that it may have, in bytes
 * @throws RequestRefused
 */
export function readBody(incoming: IncomingMessage, max = MAX_BODY_BYTES): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > max) stop(() => reject(bodyTooLarge(max)));
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

/** The refusal of a request whose body has not arrived as a whole. */
export function bodyCutOff(): RequestRefused {
  return new RequestRefused(400, 'BAD_REQUEST', 'The body was cut off.');
}

/** The refusal of a request whose body is longer than allowed, in bytes. */
export function bodyTooLarge(max = MAX_BODY_BYTES): RequestRefused {
  const message = `The body is larger than ${max} bytes, which is the most that is allowed.`;
  return new RequestRefused(413, 'BODY_TOO_LARGE', message);
}

/**
 * Parses JSON that is not nested too deep.
 * @param what the name of the text for errors, at the start of a sentence
 * @throws RequestRefused
 */
export function parseJson(text: string, what: string): unknown {
  checkNesting(text, what);
  try {
    return JSON.parse(text);
  } catch {
    throw badRequest(`${what} is not valid JSON.`);
  }
}

const [QUOTE, BACKSLASH, BRACE, CLOSING_BRACE, BRACKET, CLOSING_BRACKET] = Array.from('"\\{}[]', (character) =>
  character.charCodeAt(0),
);

/** Bounds what recursive code will meet later, without parsing: brackets outside strings are counted. */
function checkNesting(text: string, what: string): void {
  if (!hasManyBrackets(text)) return;
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text.charCodeAt(index);
    if (inString) {
      if (character === BACKSLASH) index += 1;
      else if (character === QUOTE) inString = false;
    } else if (character === QUOTE) inString = true;
    else if (character === BRACE || character === BRACKET) depth += 1;
    else if (character === CLOSING_BRACE || character === CLOSING_BRACKET) depth -= 1;
    if (depth > MAX_NESTING)
      throw badRequest(`${what} nests deeper than ${MAX_NESTING} levels, which is the most that is allowed.`);
  }
}

/** Whether so many brackets open in a text, also within strings, that they could nest too deep. Few texts have. */
function hasManyBrackets(text: string): boolean {
  let count = 0;
  for (const bracket of ['{', '['])
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) {
      count += 1;
      if (count > MAX_NESTING) return true;
    }
  return false;
}

/** The refusal of a request that is not as it must be. */
export function badRequest(message: string): RequestRefused {
  return new RequestRefused(400, 'BAD_REQUEST', message);
}
