/** An answer of another server is longer than it may be. */
export class TooLong extends Error {
  constructor(maxBytes: number) {
    super(`the answer is longer than ${maxBytes / 1024} KiB`);
  }
}

/** The body of what another server has answered; null if it has none. @throws TooLong */
export async function readBounded(
  body: AsyncIterable<Uint8Array> | null,
  maxBytes: number,
): Promise<Buffer<ArrayBuffer> | null> {
  if (!body) return null;
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of body) {
    length += part.length;
    if (length > maxBytes) throw new TooLong(maxBytes);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** For how long an answer is fresh of which nothing is said, and at most, in seconds. */
const [USUAL_S, LONGEST_S] = [300, 86_400];

/**
 * For how many seconds an answer of another server may be used again (RFC 9111, sections 4.2 and 5.2.2).
 * @param header the value of one of its headers, by its name in lower case
 */
export function freshSeconds(header: (name: string) => string | null | undefined): number {
  const control = header('cache-control')?.toLowerCase() ?? '';
  if (/(?:^|[\s,])no-(?:store|cache)\b/.test(control)) return 0;
  const maxAge = /(?:^|[\s,])max-age=\s*"?(\d{1,10})/.exec(control)?.[1];
  const expires = header('expires');
  const until = (Date.parse(expires ?? '') - (Date.parse(header('date') ?? '') || Date.now())) / 1000;
  const unsaid = expires ? 0 : USUAL_S;
  const lasts = maxAge === undefined ? (Number.isNaN(until) ? unsaid : until) : Number(maxAge);
  return Math.min(Math.max(lasts - (Number(header('age')) || 0), 0), LONGEST_S);
}
