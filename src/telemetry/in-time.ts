import { setTimeout } from 'node:timers/promises';

/** What a promise resolves to, if it does so within a time in milliseconds; undefined otherwise. */
export async function inTime<Value>(promise: Promise<Value>, ms: number): Promise<Value | undefined> {
  const waiting = new AbortController();
  const timeout = setTimeout(ms, undefined, { signal: waiting.signal, ref: false }).catch(() => undefined);
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    waiting.abort();
  }
}
