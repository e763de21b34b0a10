import { setTimeout as delay } from 'node:timers/promises';

/** The result of a promise. @throws Error if it takes longer than a time, in milliseconds; the error of the promise */
export async function inTime<Result>(promise: Result | Promise<Result>, ms: number): Promise<Result> {
  const ended = new AbortController();
  const late = delay(ms, undefined, { signal: ended.signal }).then(() => {
    throw new Error(`It took more than ${ms / 1000} seconds.`);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    ended.abort();
  }
}
