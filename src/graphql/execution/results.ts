/** A value, or the promise of one. */
export type Eventual<Value> = Value | Promise<Value>;

/** Results are plain objects, which are written faster than those without a prototype. */
export function set(results: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__')
    Object.defineProperty(results, key, { value, enumerable: true, configurable: true, writable: true });
  else results[key] = value;
}

/** The results with their promises replaced by what these resolve to. */
export function resolved(results: Record<string, unknown>): Promise<Record<string, unknown>> {
  return Promise.all(Object.values(results)).then((values) => {
    for (const [index, key] of Object.keys(results).entries()) set(results, key, values[index]);
    return results;
  });
}

/** Whether a value is to be waited for. */
export function isThenable(value: unknown): value is Promise<unknown> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as PromiseLike<unknown>).then === 'function'
  );
}

/** Whether a value is surely an object that has fields: no error, and nothing that is to be waited for. */
export function isObject(value: unknown): value is object {
  try {
    return typeof value === 'object' && value !== null && !(value instanceof Error) && !isThenable(value);
  } catch {
    return false;
  }
}
