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
  Host: 'host',
  Origin: 'origin',
  Authorization: 'authorization',
  Accept: 'accept',
  'Content-Type': 'contentType',
  'Content-Length': 'contentLength',
  'Content-Encoding': 'contentEncoding',
  'Transfer-Encoding': 'transferEncoding',
};

/** A header that is looked for: its name as clients and proxies write it, and in lower case. */
interface Sought {
  readonly usual: string;
  readonly lower: string;
  readonly member: keyof RequestHead;
}

/** By the length of the name: most headers have names of other lengths, and are not looked at. */
const SOUGHT: readonly (readonly Sought[] | undefined)[] = soughtByLength();
/** One shape for all heads: what reads them is faster. */
const NOTHING = Object.fromEntries(Object.values(NAMES).map((member) => [member, undefined])) as RequestHead;

function soughtByLength(): Sought[][] {
  const all: Sought[][] = [];
  for (const [usual, member] of Object.entries(NAMES))
    (all[usual.length] ??= []).push({ usual, lower: usual.toLowerCase(), member });
  return all;
}

/**
 * Reads the head of a request.
 * @param rawHeaders names and values in turn, as Node has them
 * @returns undefined if one of these headers is there twice, but for those that are lists
 */
export function readHead(rawHeaders: readonly string[]): RequestHead | undefined {
  const head: RequestHead = { ...NOTHING };
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!;
    const member = memberOf(name);
    if (member === undefined) continue;
    const before = head[member];
    if (before !== undefined && member !== 'accept') return undefined;
    head[member] = before === undefined ? rawHeaders[index + 1]! : `${before}, ${rawHeaders[index + 1]!}`;
  }
  return head;
}

function memberOf(name: string): keyof RequestHead | undefined {
  const sought = SOUGHT[name.length];
  if (sought === undefined) return undefined;
  for (const { usual, lower, member } of sought)
    if (name === usual || name === lower || name.toLowerCase() === lower) return member;
  return undefined;
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

/**
 * Whether percent-encoding stands for UTF-8. What does not is refused before anything else reads it: to replace byte by
 * byte what is no UTF-8 takes thousands of times as long.
 */
export function isDecodable(text: string): boolean {
  if (!text.includes('%')) return true;
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
