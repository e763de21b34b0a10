import assert from 'node:assert/strict';
import type { Background, OwnFeature } from '../../src/feature.ts';
import type { OpenedService, StartService } from '../../src/service/configured-server.ts';
import { withBackground } from '../../src/service/background.ts';
import { collectingLog } from '../support/log.ts';

describe('work of features beside requests', () => {
  it('that fails as it goes on or stops is logged, and the rest goes on', async () => {
    const { log, lines } = collectingLog();
    const done: string[] = [];
    const fail = () => {
      throw new Error('broken');
    };
    const featureOf = (name: string, work: object): OwnFeature => ({
      name,
      background: async () => work as Background,
    });
    const features = [
      featureOf('broken', { prepare: async () => fail, stop: fail }),
      featureOf('silent', { stop() {} }),
      featureOf('other', { prepare: async () => () => done.push('goes on'), stop: async () => done.push('stops') }),
    ];
    const served = { prepare: async () => () => {}, stop: async () => {} };
    const start = (async () => served) as unknown as StartService;
    const context = { features, log } as unknown as Parameters<typeof withBackground>[1];
    const running = await withBackground(start, context)({} as OpenedService, { host: '127.0.0.1', port: 0 });
    await (
      await running.prepare({} as OpenedService)
    )();
    await running.stop();
    assert.deepEqual(done, ['goes on', 'stops']);
    assert.deepEqual(
      lines.map(({ level, fields }) => [level, (fields as { feature: string }).feature]),
      [
        ['error', 'broken'],
        ['error', 'broken'],
      ],
    );
  });
});
