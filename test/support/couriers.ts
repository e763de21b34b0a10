import { randomUUID } from 'node:crypto';
import { DEFAULT_NOTICES, type NoticeSettings } from '../../src/features/notices/notice.ts';
import { NO_LOG } from '../../src/log.ts';
import { Dispatcher } from '../../src/features/notices/dispatcher.ts';
import type { Destination } from '../../src/features/notices/destination.ts';
import { webhook } from '../../src/features/notices/post.ts';
import { NOTICES, type NoticeStore } from '../../src/features/notices/collect.ts';
import type { Store } from '../../src/store/open.ts';
import type { TestKeys } from './keys.ts';
import type { Receiver } from './webhook.ts';

/** A dispatcher that tests run step by step, with the tests' clock. */
export interface TestCourier {
  dispatcher: Dispatcher;
  /** The receiver of notices; undefined for none. */
  destination: Destination | undefined;
  /** Does everything that is due. */
  run(): Promise<void>;
  /** The log: level, message, fields. */
  log: { level: string; message: string; fields: Record<string, unknown> }[];
}

/** A receiver as a destination of notices. */
export function destinationOf(receiver: Receiver, settings: Partial<NoticeSettings> = {}): Destination {
  const { url, secret } = receiver;
  const all = { url, secretFile: undefined, ...DEFAULT_NOTICES, ...settings };
  return { url, settings: all, send: webhook.open(all, { SVC_API_NOTICES_SECRET: secret }) };
}

/** The queue of notices in a store. */
export function noticesOf({ store }: { store: Pick<Store, 'repository'> }): NoticeStore {
  return store.repository.port(NOTICES);
}

/** A dispatcher over a store. The store sees it as another process. */
export function testCourier(
  test: Pick<TestKeys, 'store' | 'time'>,
  destination: Destination | undefined,
  options: { timeoutMs?: number } = {},
): TestCourier {
  const log: TestCourier['log'] = [];
  const noted = (level: string) => (fields: object, message: string) =>
    void log.push({ level, message, fields: fields as Record<string, unknown> });
  const made: TestCourier = {
    destination,
    log,
    dispatcher: new Dispatcher({
      store: noticesOf(test),
      destination: () => made.destination,
      ...options,
      clock: () => test.time.now,
      elapsed: () => test.time.now,
      random: () => 0.5,
      id: randomUUID(),
      log: { ...NO_LOG, info: noted('info'), warn: noted('warn'), error: noted('error') },
    }),
    async run() {
      await made.dispatcher.pass();
      await made.dispatcher.idle();
    },
  };
  return made;
}
