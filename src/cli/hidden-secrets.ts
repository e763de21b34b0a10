/**
 * A result whose secrets, its fields `key`, are there for a program that asks for one, and nowhere else: they are left
 * out where the result is logged, spread or turned into JSON. oclif passes results on to hooks of all plugins.
 */
export function withHiddenSecrets<Result extends object>(result: Result): Result {
  const copy: object = Array.isArray(result) ? [] : {};
  for (const [name, value] of Object.entries(result)) {
    // What a key did to others names these by a field `key`.
    const isPlain = typeof value !== 'object' || value === null || name === 'issued';
    const shown: unknown = isPlain ? value : withHiddenSecrets(value as object);
    Object.defineProperty(copy, name, { value: shown, enumerable: name !== 'key', writable: true, configurable: true });
  }
  return copy as Result;
}
