/**
 * Keeps values computed from texts, since clients send few different ones. When there are too many, all are
 * forgotten: tracking the least recently used would take longer than computing.
 * @param compute its errors are not kept
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
