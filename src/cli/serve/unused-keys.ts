import { setImmediate as nextTurn } from 'node:timers/promises';
import type { KeysService } from '../../keys/service.ts';
import type { Log } from '../../log.ts';

/** Seldom, and not right at the start: after a long rest, those who use keys first get the time to do so. */
const EVERY_MS = 3_600_000;

/**
 * Has keys that are not used disabled once an hour, as the policy of that time says.
 * @param keysOf the service by the present configuration
 * @returns stops it, and resolves once nothing of it is under way
 */
export function keepDisablingUnused(keysOf: () => KeysService, log: Log): () => Promise<void> {
  let [isStopped, running] = [false, Promise.resolve()];
  const pass = async () => {
    const keys = keysOf();
    let count = 0;
    try {
      for await (const disabled of keys.disableUnused()) {
        count += disabled;
        await nextTurn();
        if (isStopped || keysOf() !== keys) break;
      }
    } catch (error) {
      log.warn({ err: error }, 'keys that are not used could not be disabled');
    }
    if (count > 0) log.info({ disabled: count }, 'disabled keys that were not used, as the policy says');
  };
  const timer = setInterval(() => (running = running.then(pass)), EVERY_MS);
  timer.unref();
  return () => {
    isStopped = true;
    clearInterval(timer);
    return running;
  };
}
