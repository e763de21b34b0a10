/** What JSON escapes in a text, and surrogates, of which `JSON.stringify` escapes those without a partner. */
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/;

/** A text as JSON, as `JSON.stringify` writes it. */
export function quote(text: string): string {
  return ESCAPED.test(text) ? JSON.stringify(text) : `"${text}"`;
}

/** A serialized leaf value as JSON; undefined if `JSON.stringify` leaves it out, such as a function. */
export function writeLeaf(value: unknown): string | undefined {
  switch (typeof value) {
    case 'string':
      return quote(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'number':
      return Number.isFinite(value) ? String(value) : 'null';
    default:
      return JSON.stringify(value) as string | undefined;
  }
}
