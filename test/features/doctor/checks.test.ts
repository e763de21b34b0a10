import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { CheckContext, DoctorCheck } from '../../../src/feature.ts';
import { linesOf } from '../../../src/features/doctor/cli/doctor.ts';
import { checkOfPlugin } from '../../../src/features/doctor/checks.ts';

const CONTEXT = { config: undefined, store: undefined, env: {}, clock: Date.now, features: [] };

/** The findings of a plugin's check. */
const found = (run: unknown, limitMs?: number) =>
  checkOfPlugin('svc-api-team', { name: 'SVC_API_TEAM', run: run as DoctorCheck['run'] }, CONTEXT, limitMs);

describe('a check of a plugin', () => {
  it('answers with text and a remedy', async () => {
    const items = [{ text: 'D', json: { d: 1 } }];
    const answers = [
      { status: 'ok', message: 'A' },
      { status: 'warning', message: 'B', remedy: 'C', items },
    ];
    assert.deepEqual(await found(async () => answers), [
      { check: 'SVC_API_TEAM', status: 'ok', message: 'A', remedy: null },
      { check: 'SVC_API_TEAM', status: 'warning', message: 'B', remedy: 'C', items },
    ]);
    assert.deepEqual(await found(async () => []), []);
  });

  it('is a failure that names the plugin if it throws or gives no valid answers', async () => {
    const wrong: [unknown, RegExp][] = [
      [
        () => {
          throw new Error('no room');
        },
        /svc-api-team failed\. no room$/,
      ],
      [() => Promise.reject(new Error('no room')), /svc-api-team failed\. no room$/],
      // eslint-disable-next-line prefer-promise-reject-errors
      [() => Promise.reject(undefined), /svc-api-team failed/],
      [async () => {}, /svc-api-team failed\. It gave no valid answers/],
      [async () => ({ status: 'ok', message: 'A' }), /svc-api-team failed\. It gave no valid answers/],
      [async () => [{ status: 'fine', message: 'A' }], /svc-api-team failed.*status/],
      [async () => [{ status: 'ok' }], /svc-api-team failed.*message/],
      [async () => [{ status: 'ok', message: 'A', items: [{ text: 'D' }] }], /svc-api-team failed.*json/],
      [async () => [{ status: 'failure', message: 'A' }], /svc-api-team failed.*remedy/],
    ];
    for (const [run, message] of wrong) {
      const [finding, ...others] = await found(run);
      assert.deepEqual([finding!.check, finding!.status, others], ['SVC_API_TEAM', 'failure', []]);
      assert.match(finding!.message, message);
      assert.match(finding!.remedy!, /svc-api plugins uninstall svc-api-team/);
    }
  });

  it('is one line of text, and one for the remedy', async () => {
    const findings = await found(async () => [{ status: 'warning', message: 'A\nB', remedy: 'C\nD' }]);
    assert.deepEqual(
      linesOf(findings)
        .slice(0, -1)
        .map((line) => line.slice(-3)),
      ['A B', 'C D'],
    );
  });

  it('is given up if it does not end, which it can notice', async () => {
    const noticed = new EventEmitter();
    const aborted = new Promise((resolve) => noticed.once('aborted', resolve));
    const run = ({ signal }: CheckContext) => {
      signal.addEventListener('abort', () => noticed.emit('aborted'));
      return new Promise(() => {});
    };
    const [finding] = await found(run, 1);
    assert.deepEqual(
      [finding!.status, /svc-api-team failed\. It took more than/.test(finding!.message)],
      ['failure', true],
    );
    await aborted;
  });
});
