import { setFlagsFromString } from 'node:v8';

/**
 * Compiles code that V8 is not to remember. It keeps the source of each generated function, even after the function is
 * gone, until the memory of the process is exhausted.
 */
export function withoutCodeCache<Result>(compile: () => Result): Result {
  setFlagsFromString('--no-compilation-cache');
  try {
    return compile();
  } finally {
    setFlagsFromString('--compilation-cache');
  }
}
