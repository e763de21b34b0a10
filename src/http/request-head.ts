/** The headers of a request that decide how it is handled, with their values as they came. */
export interface RequestHead {
  host?: string | undefined;
  origin?: string | undefined;
  authorization?: string | undefined;
  /** Several are joined with commas. */
  accept?: string | undefined;
  contentType?: string | undefined;
  contentLength?: string | undefined;
  contentEncoding?: string | undefined;
  transferEncoding?: string | undefined;
}

const NAMES: Readonly<Record<string, keyof RequestHead>> = {
  host: 'host',
  origin: 'origin',
  authorization: 'authorization',
  accept: 'accept',
  'content-type': 'contentType',
  'content-length': 'contentLength',
  'content-encoding': 'contentEncoding',
  'transfer-encoding': 'transferEncoding',
};
/** Most headers have names of other lengths, and are not looked at. */
const LENGTHS: readonly boolean[] = Array.from(
  { length: Math.max(...Object.keys(NAMES).map((name) => name.length)) + 1 },
  (_, length) => Object.keys(NAMES).some((name) => name.length === length),
);

/**
 * Reads the head of a request.
 * @param rawHeaders names and values in turn, as Node has them
 * @returns undefined if one of these headers is there twice, but for those that are lists
 */
export function readHead(rawHeaders: readonly string[]): RequestHead | undefined {
  const head: RequestHead = {};
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!;
    if (!LENGTHS[name.length]) continue;
    const member = NAMES[name.toLowerCase()];
    if (member === undefined) continue;
    const before = head[member];
    if (before !== undefined && member !== 'accept') return undefined;
    head[member] = before === undefined ? rawHeaders[index + 1]! : `${before}, ${rawHeaders[index + 1]!}`;
  }
  return head;
}

/**
 * The value of a header, several of them joined with commas as `Headers` does; undefined without one.
 * @param rawHeaders names and values in turn, as Node has them
 * @param name in lower case
 */
export function headerValue(rawHeaders: readonly string[], name: string): string | undefined {
  let value: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const here = rawHeaders[index]!;
    if (here.length !== name.length || here.toLowerCase() !== name) continue;
    value = value === undefined ? rawHeaders[index + 1]! : `${value}, ${rawHeaders[index + 1]!}`;
  }
  return value;
}
