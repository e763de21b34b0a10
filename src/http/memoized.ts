/**
 * Keeps what was computed from texts, of which clients send few. Once there are too many, all are forgotten: to know
 * which was used least recently would take longer than to find one.
 * @param compute what it throws is not kept
 * @param max how many are kept
 */
export function memoized<Value extends object | string | boolean>(
  compute: (text: string) => Value,
  max = 100,
): (text: string) => Value {
  const known = new Map<string, Value>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    const value = compute(text);
    if (known.size >= max) known.clear();
    known.set(text, value);
    return value;
  };
}
