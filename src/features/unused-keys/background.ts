import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { UnusedKeys } from './unused-keys.ts';
import type { Background, BackgroundContext } from '../../feature.ts';

const EVERY_MS = 3_600_000;

/** Disables keys once an hour that are not used. None at the start: after a long rest, those in use get time to be used. */
export async function disableUnused({ keys, log }: BackgroundContext): Promise<Background> {
  let present = keys;
  let isStopped = false;
  const disable = async () => {
    const keys = present;
    let count = 0;
    try {
      for await (const disabled of keys.feature(UnusedKeys).disableUnused()) {
        count += disabled;
        await yieldToEventLoop();
        if (isStopped || present !== keys) break;
      }
    } catch (error) {
      log.warn({ err: error }, 'keys that are not used could not be disabled');
    }
    if (count > 0) log.info({ disabled: count }, 'disabled keys that were not used, as the policy says');
  };
  let running = Promise.resolve();
  const timer = setInterval(() => (running = running.then(disable)), EVERY_MS).unref();
  return {
    prepare: async (changed) => () => void (present = changed.keys),
    stop() {
      isStopped = true;
      clearInterval(timer);
      return running;
    },
  };
}
