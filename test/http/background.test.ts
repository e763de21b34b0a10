import assert from 'node:assert/strict';
import type { Background, OwnFeature, TelemetryMetrics } from '../../src/feature.ts';
import { type AddedMetric, requireMetrics } from '../../src/keys/added/index.ts';
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
    const started = withBackground(start, context);
    const running = await started({} as OpenedService, { host: '127.0.0.1', port: 0 });
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

  it('exports its metrics under the name of the feature, and works without metrics', async () => {
    const metric: AddedMetric = { name: 'beats_total', kind: 'counter', help: 'Beats.', read: () => [[1]] };
    const feature: OwnFeature = {
      name: 'heartbeat',
      background: async ({ measure }) => {
        measure([metric]);
        return { stop: async () => {} };
      },
    };
    const start = (async () => ({ stop: async () => {} })) as unknown as StartService;
    const context = { features: [feature] } as unknown as Parameters<typeof withBackground>[1];
    const added: unknown[] = [];
    const exported = { add: (...given: unknown[]) => void added.push(given) } as unknown as TelemetryMetrics;
    for (const metrics of [exported, undefined]) {
      const running = await withBackground(
        start,
        context,
        metrics,
      )({} as OpenedService, { host: '127.0.0.1', port: 0 });
      await running.stop();
    }
    assert.deepEqual(added, [['heartbeat', [metric]]]);
  });

  it("of plugins exports metrics whose names start with the plugin's", () => {
    requireMetrics('svc-api-team', [
      { name: 'svc_api_team_beats_total', kind: 'counter', help: 'Beats.', read: () => [] },
    ]);
    assert.throws(
      () => requireMetrics('svc-api-team', [{ name: 'beats_total', kind: 'counter', help: 'Beats.', read: () => [] }]),
      { code: 'FEATURE_INVALID', message: /svc-api-team.*"beats_total" must begin with "svc_api_team_"/ },
    );
  });
});
