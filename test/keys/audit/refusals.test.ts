import assert from 'node:assert/strict';
import { type Refusal, RefusalSampler } from '../../../src/keys/audit/refusals.ts';

const PERIOD_MS = 600_000;
const NOBODY = { kind: 'REQUEST', id: null, name: null } as const;
const MALFORMED: Refusal = { reason: 'malformed', actor: NOBODY, apiKey: null };

/** A refused request with a secret of a known key. */
const refusalOf = (id: string, fields: Partial<Refusal> = {}): Refusal => ({
  reason: 'disabled',
  actor: { ...NOBODY, name: `svc_${id}_…` },
  apiKey: { id, name: id },
  ...fields,
});

describe('refused requests, sampled for the audit log', () => {
  let sampler: RefusalSampler;
  beforeEach(() => {
    sampler = new RefusalSampler();
  });
  /** The due entries, each with its time and the number of requests. */
  const taken = (now: number, all?: boolean) =>
    sampler.take(now, all).map(({ at, after }) => [at, after!['reason'], after!['count']]);

  it('are due at once, with all that is known of them', () => {
    sampler.add(MALFORMED, 5);
    sampler.add({ ...refusalOf('a'), missing: ['ME:READ_OWN'], address: '192.0.2.1' }, 6);
    assert.deepEqual(sampler.take(7), [
      { at: 5, actor: NOBODY, action: 'REFUSE', apiKey: null, before: null, after: { reason: 'malformed', count: 1 } },
      {
        at: 6,
        actor: { ...NOBODY, name: 'svc_a_…' },
        action: 'REFUSE',
        apiKey: { id: 'a', name: 'a' },
        before: null,
        after: { reason: 'disabled', count: 1, missing: ['ME:READ_OWN'] },
        address: '192.0.2.1',
      },
    ]);
    assert.deepEqual(sampler.take(8), []);
  });

  it('are only counted when they come again, until the period ends or all are asked for', () => {
    for (const time of [0, 1, 2]) sampler.add(MALFORMED, time);
    assert.deepEqual(taken(PERIOD_MS - 1), [[0, 'malformed', 1]]);
    assert.deepEqual(taken(PERIOD_MS), [[PERIOD_MS, 'malformed', 2]]);
    for (const time of [0, 1]) sampler.add(MALFORMED, 2 * PERIOD_MS + time);
    assert.deepEqual(taken(2 * PERIOD_MS + 2, true), [
      [2 * PERIOD_MS, 'malformed', 1],
      [2 * PERIOD_MS + 2, 'malformed', 1],
    ]);
  });

  it('start a new period at the end of the last, though nothing was taken meanwhile', () => {
    for (const time of [0, 1, PERIOD_MS]) sampler.add(MALFORMED, time);
    assert.deepEqual(taken(PERIOD_MS), [
      [0, 'malformed', 1],
      [PERIOD_MS, 'malformed', 1],
      [PERIOD_MS, 'malformed', 1],
    ]);
  });

  it('share one count from the sixth kind of a key on, which names no secret', () => {
    for (let kind = 1; kind <= 7; kind += 1) {
      sampler.add(refusalOf('a', { address: `192.0.2.${kind}` }), 0);
      sampler.add({ ...MALFORMED, actor: { ...NOBODY, name: `svc_${kind}_…` } }, 0);
      sampler.add(
        { reason: 'forbidden', actor: { kind: 'KEY', id: 'b', name: 'B' }, apiKey: null, missing: [`${kind}`] },
        0,
      );
    }
    assert.equal(sampler.take(0).length, 15);
    const shared = sampler
      .take(1, true)
      .map(({ actor, apiKey, after, ...rest }) => ({ actor, apiKey, after, address: 'address' in rest }));
    const after = { reason: 'various', count: 2 };
    assert.deepEqual(shared, [
      { actor: NOBODY, apiKey: { id: 'a', name: 'a' }, after, address: false },
      { actor: NOBODY, apiKey: null, after, address: false },
      { actor: { kind: 'KEY', id: 'b', name: 'B' }, apiKey: null, after, address: false },
    ]);
  });

  it('of more than 1,000 keys are counted with those of no key; those of the first keys as before', () => {
    for (let id = 0; id <= 1000; id += 1) sampler.add(refusalOf(`${id}`), 0);
    const due = sampler.take(0);
    assert.deepEqual([due.length, due[999]!.apiKey!.id], [1001, '999']);
    const { actor, apiKey: key, after } = due[1000]!;
    assert.deepEqual([actor, key, after], [NOBODY, null, { reason: 'various', count: 1 }]);
    sampler.add(refusalOf('0'), 0);
    sampler.add(refusalOf('1001'), 0);
    assert.deepEqual(
      sampler.take(1, true).map((draft) => [draft.apiKey?.id, draft.after]),
      [
        ['0', { reason: 'disabled', count: 1 }],
        [undefined, { reason: 'various', count: 1 }],
      ],
    );
  });
});
