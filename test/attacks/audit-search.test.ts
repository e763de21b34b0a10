import assert from 'node:assert/strict';
import { AUDIT_ACTIONS, type AuditDraft, type AuditEntry } from '../../src/keys/audit/audit-entry.ts';
import type { AuditQuery } from '../../src/keys/audit/audit-reader.ts';
import { openStore, type Store } from '../../src/store/open.ts';
import { describeOnEach } from '../support/dialects.ts';
import { idOf } from '../support/keys.ts';
import { Random } from '../support/random.ts';
import { tempStore } from '../support/temp.ts';

const IDS = ['one', 'two', 'three'].map(idOf);
const RARE = idOf('rare');
/** One name is the id of another key. */
const NAMES = ['Name', idOf('two'), 'Other'];
const [ENTRIES, TIMES] = [6000, 500];

function draftOf(random: Random): AuditDraft {
  // Few entries are about one key, and the clock is sometimes set back.
  const key = (kind: 'rare' | 'common') => (random.chance(0.002) ? RARE : random.pick(kind === 'rare' ? IDS : NAMES));
  return {
    at: Math.floor(random.next() * TIMES),
    actor: { kind: 'KEY', id: key('rare'), name: key('common') },
    action: random.chance(0.001) ? 'ROTATE' : random.pick(['CREATE', 'REFUSE', 'DELETE']),
    apiKey: random.chance(0.8) ? { id: key('rare'), name: key('common') } : null,
    before: null,
    after: null,
  };
}

function queryOf(random: Random): AuditQuery {
  const values = [...IDS, ...NAMES, RARE, RARE, idOf('none'), 'none'];
  const numberOf = () => Math.floor(random.next() * ENTRIES);
  const since = Math.floor(random.next() * TIMES);
  return {
    limit: random.chance(0.3) ? ENTRIES : 1 + Math.floor(random.next() * 60),
    order: random.pick(['newest', 'oldest']),
    ...(random.chance(0.4) && { apiKey: random.pick(values) }),
    ...(random.chance(0.4) && { actor: random.pick(values) }),
    ...(random.chance(0.4) && { action: random.pick(AUDIT_ACTIONS) }),
    ...(random.chance(0.3) && { since }),
    ...(random.chance(0.3) && { until: since + 1 + Math.floor(random.next() * 20) }),
    ...(random.chance(0.2) && { before: numberOf() }),
    ...(random.chance(0.2) && { after: numberOf() }),
  };
}

/** The entries that a simple filter finds, oldest first. */
function expected(all: readonly AuditEntry[], query: AuditQuery): AuditEntry[] {
  const { apiKey: key, actor, action, since, until, before, after } = query;
  const entries = all.filter(
    (entry) =>
      (key === undefined || entry.apiKey?.id === key || entry.apiKey?.name === key) &&
      (actor === undefined || entry.actor.id === actor || entry.actor.name === actor) &&
      (action === undefined || entry.action === action) &&
      (since === undefined || entry.at >= since) &&
      (until === undefined || entry.at < until) &&
      (before === undefined || entry.number < before) &&
      (after === undefined || entry.number > after),
  );
  return (query.order === 'newest' ? entries.toReversed() : entries).slice(0, query.limit);
}

describeOnEach('a search of the audit log', () => {
  let store: Store;
  beforeEach(async () => {
    store = await openStore({ database: tempStore() });
  });
  afterEach(() => store.close());

  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 32));
  it(`finds the same as a simple filter (SEED=${seed})`, async () => {
    const random = new Random(seed);
    const drafts = Array.from({ length: ENTRIES }, () => draftOf(random));
    await store.repository.write((writer) => writer.appendToAuditLog(drafts));
    const all = await store.repository.auditLog.find({ limit: ENTRIES, order: 'oldest' });
    assert.equal(all.length, ENTRIES);
    for (let times = 0; times < 200; times += 1) {
      const query = queryOf(random);
      const entries = expected(all, query);
      assert.deepEqual(await store.repository.auditLog.find(query), entries, JSON.stringify(query));
    }
  });
});
