import assert from 'node:assert/strict';
import { defaultConfig } from '../../../src/config/default-config.ts';
import type { BackgroundContext } from '../../../src/feature.ts';
import { publishFeed } from '../../../src/features/nats/background.ts';

describe('the feed of a server', () => {
  it('that changes in the configuration changes with the next start, as the log says', async () => {
    const lines: string[] = [];
    const log = { warn: (_: object, message: string) => void lines.push(message) };
    const config = { ...defaultConfig(), feed: undefined };
    const context = { config, hasGraphQL: true, log } as unknown as BackgroundContext;
    const work = await publishFeed(context);
    const take = async (feed: unknown) =>
      (await work.prepare!({ ...context, config: { ...config, feed } as BackgroundContext['config'] }))();
    await take(undefined);
    assert.equal(lines.length, 0);
    await take({ nats: { servers: ['nats://127.0.0.1:4222'] } });
    assert.match(lines.join('\n'), /"feed" takes effect with the next start/);
    await work.stop();
  });
});
