/** Headers of one connection (RFC 9110, section 7.6.1), or of one hop's authentication, which are not passed on. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
]);

/** Whether a header, by its canonical name, belongs to one connection. */
export function isHopByHop(name: string): boolean {
  return HOP_BY_HOP.has(name);
}

const NONE: ReadonlySet<string> = new Set();

/** The headers which the Connection header says that they are for one connection, in lower case. */
export function connectionOptions(rawHeaders: readonly string[]): ReadonlySet<string> {
  let options: Set<string> | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!;
    if (name.length !== 'connection'.length || name.toLowerCase() !== 'connection') continue;
    options ??= new Set();
    for (const option of rawHeaders[index + 1]!.split(',')) options.add(option.trim().toLowerCase());
  }
  return options ?? NONE;
}

/** The values of a header, by its name in lower case. */
export function valuesOf(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (rawHeaders[index]!.length === name.length && rawHeaders[index]!.toLowerCase() === name)
      values.push(rawHeaders[index + 1]!);
  }
  return values;
}

/** Names and values in turn, as pairs. */
export function pairsOf(raw: readonly string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, index) => [raw[2 * index]!, raw[2 * index + 1]!]);
}
