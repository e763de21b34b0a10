import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { startConsoleService, type Visitor, visitorWith } from './support/console.ts';
import type { TestService } from '../../support/server.ts';

describe('the export of the audit log in the console', () => {
  let test: TestService;
  let visitor: Visitor;
  beforeEach(async () => {
    test = await startConsoleService();
    ({ visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] }));
  });
  afterEach(() => test.stop());

  const download = (query: string, by = visitor) =>
    fetch(`${test.url}/console/audit-log/export?${query}`, { headers: { cookie: by.cookie!, accept: 'text/html' } });
  const addEntries = (length: number, action: 'CREATE' | 'DELETE' = 'CREATE', name = 'tester') => {
    const actor = { kind: 'CLI', id: null, name } as const;
    const draft = { at: test.time.now, actor, action, apiKey: null, before: null, after: null };
    const drafts = Array.from({ length }, () => draft);
    return test.store.repository.write((writer) => writer.appendToAuditLog(drafts));
  };

  it('is all that is filtered, in JSON lines with values, or in CSV with a head', async () => {
    const { apiKey: key } = await test.keys.create({ name: 'Deploy', permissions: ['DOCKER:READ_ANY'] }, OPERATOR);
    await test.keys.update(key.id, { description: 'a "b", c\nd' }, OPERATOR).catch(() => {});
    await test.keys.update(key.id, { description: 'a "b", c' }, OPERATOR);
    const lines = await download('format=jsonl&key=Deploy');
    assert.equal(lines.headers.get('content-type'), 'application/jsonl');
    assert.equal(lines.headers.get('content-disposition'), 'attachment; filename="audit-log-2030-01-01.jsonl"');
    assert.equal(lines.headers.get('x-content-type-options'), 'nosniff');
    const entries = (await lines.text())
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.deepEqual(
      entries.map(({ action }) => action),
      ['UPDATE', 'CREATE'],
    );
    assert.deepEqual(entries[0]!['changes'], [{ field: 'description', before: null, after: 'a "b", c' }]);
    assert.match(entries[0]!['hash'] as string, /^[0-9a-f]{64}$/);
    const csv = await (await download('format=csv&key=Deploy&action=UPDATE')).text();
    const [head, row, end] = csv.split('\r\n');
    assert.equal(
      head,
      '"number","at","actor_kind","actor_id","actor","action","key_id","key","address","changes","hash"',
    );
    assert.ok(
      row!.startsWith(`"3","2030-01-01T00:00:00.000Z","CLI","","tester","UPDATE","${key.id}","Deploy","",`),
      row,
    );
    assert.ok(row!.includes(String.raw`""after"":""\""a \\\""b\\\"", c\""""`), row);
    assert.equal(end, '');
  });

  it('has no cell that a spreadsheet takes for a formula', async () => {
    for (const name of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '|calc', '＝1']) await addEntries(1, 'DELETE', name);
    const csv = await (await download('format=csv&action=DELETE')).text();
    const cells = Array.from(csv.matchAll(/"CLI","","([^"]*)"/g), ([, cell]) => cell!);
    assert.equal(cells.length, 7);
    for (const cell of cells) assert.ok(cell.startsWith("'"), cell);
  });

  it('is read page by page, as far as its limit', async () => {
    await addEntries(1700);
    const text = await (await download('format=jsonl')).text();
    const numbers = text
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { number: number }).number);
    assert.deepEqual(
      numbers,
      Array.from({ length: 1701 }, (_, index) => 1701 - index),
    );
    await addEntries(98_500);
    const csv = await (await download('format=csv')).text();
    assert.equal(csv.split('\r\n').length, 1 + 100_000 + 1);
  });

  it('has what the key may read, and nothing for others', async () => {
    await test.keys.create({ name: 'Deploy', permissions: ['DOCKER:READ_ANY'] }, OPERATOR);
    const { visitor: auditor } = await visitorWith(test, { name: 'Auditor', permissions: ['LOGS:READ_ANY'] });
    assert.equal(await (await download('format=jsonl', auditor)).text(), '');
    const { visitor: reader } = await visitorWith(test, { name: 'Docker', permissions: ['API_KEY:READ_ANY'] });
    const refused = await download('format=jsonl', reader);
    assert.deepEqual([refused.status, refused.headers.get('content-type')], [403, 'text/html; charset=utf-8']);
    const anybody = await fetch(`${test.url}/console/audit-log/export?format=csv`, { redirect: 'manual' });
    assert.equal(anybody.status, 303);
  });

  it('breaks off, and does not end, once the key is deleted', async () => {
    await addEntries(40_000);
    const { visitor: bea, principal } = await visitorWith(test, { name: 'Bea', roles: ['ADMIN'] });
    const response = await download('format=jsonl', bea);
    const reader = response.body!.getReader();
    await reader.read();
    await test.keys.delete([principal.apiKey.id], OPERATOR);
    await assert.rejects(async () => {
      while (!(await reader.read()).done);
    });
  });

  it('is refused for an unknown filter or format', async () => {
    for (const query of ['format=xml', 'format=csv&since=yesterday', 'format=__proto__', '']) {
      const refused = await download(query);
      assert.equal(refused.status, 400, query);
      assert.match(await refused.text(), /<h1>/);
    }
  });
});
