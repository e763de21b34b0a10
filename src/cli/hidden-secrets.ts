/**
 * A result whose secrets, its fields `key`, are there for a program that asks for one, and nowhere else: they are left
 * out where the result is logged, spread or turned into JSON. oclif passes results on to hooks of all plugins.
 */
export function withHiddenSecrets<Result extends object>(result: Result): Result {
  const copy: object = Array.isArray(result) ? [] : {};
  for (const [name, value] of Object.entries(result)) {
    const shown: unknown = typeof value === 'object' && value !== null ? withHiddenSecrets(value as object) : value;
    Object.defineProperty(copy, name, { value: shown, enumerable: name !== 'key', writable: true, configurable: true });
  }
  return copy as Result;
}
