import assert from 'node:assert/strict';
import { AUDIT_ACTIONS } from '../../../src/keys/audit/audit-entry.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { startConsoleService, type Visitor, visitorWith } from './support/console.ts';
import { changeDirectly, unlockAuditLog } from '../../support/direct.ts';
import { query, type TestService } from '../../support/server.ts';

describe('the audit log in the console', () => {
  let test: TestService;
  let visitor: Visitor;
  beforeEach(async () => {
    test = await startConsoleService();
    ({ visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] }));
    const { apiKey: key } = await test.keys.create({ name: 'Deploy', permissions: ['DOCKER:READ_ANY'] }, OPERATOR);
    test.time.now += 60_000;
    await test.keys.update(key.id, { description: '<i>Pipelines</i>', permissions: ['DISK:READ_ANY'] }, OPERATOR);
  });
  afterEach(() => test.stop());

  it('shows who did what, newest first, and the changes', async () => {
    const { text, html } = await visitor.open('audit-log');
    assert.match(
      text,
      /Today now tester changed Deploy · description, permissions Details description <i>Pipelines<\/i> permissions DOCKER:READ_ANY → DISK:READ_ANY 1 minute ago tester created Deploy · 1 permission Details name Deploy permissions DOCKER:READ_ANY/,
    );
    assert.match(html, /<a href="\.\/keys\/[0-9a-f-]{36}">Deploy<\/a>/);
    assert.doesNotMatch(html, /<i>/);
  });

  it('shows metadata and texts as they are', async () => {
    const metadata = { since: '2030-01-01T00:00:00Z', grace: 3_600_000, none: null, z: true };
    const { apiKey: key } = await test.keys.create({ name: 'Acme', roles: ['GUEST'], metadata }, OPERATOR);
    const change = { metadata: { plan: 'pro', z: false }, description: '2030-01-01T00:00:00Z' };
    await test.keys.update(key.id, change, OPERATOR);
    const { text } = await visitor.open('audit-log');
    assert.ok(text.includes(`metadata ${JSON.stringify(metadata)} → {"plan":"pro","z":false}`), text);
    assert.ok(text.includes('description 2030-01-01T00:00:00Z'), text);
  });

  it('says how often a key was refused alike, in one sentence', async () => {
    const { key } = await test.keys.create({ name: 'Display', roles: ['GUEST'] }, OPERATOR);
    const forbidden = async (times: number, text: string) => {
      for (let count = 0; count < times; count += 1) await query(test.url, key, text);
      test.time.now += 600_000;
      await test.keys.finishActivity();
    };
    await forbidden(3, '{ info { name } }');
    await forbidden(4, '{ info { name } }');
    await forbidden(1, '{ permissions { resources } }');
    const { visitor: bea } = await visitorWith(test, { name: 'Bea', roles: ['ADMIN'] });
    const { text } = await bea.open('audit-log');
    assert.match(
      text,
      /Display was refused · forbidden, without PERMISSION:READ_ANY .*Display was refused · forbidden, without INFO:READ_ANY, 7 times/,
    );
    assert.equal(text.split('Display was refused').length, 3);
  });

  it('has a row for each day, with the newest first', async () => {
    test.time.now += 86_400_000;
    await test.keys.create({ name: 'Tomorrow', roles: ['GUEST'] }, OPERATOR);
    const { visitor: bea } = await visitorWith(test, { name: 'Bea', roles: ['ADMIN'] });
    const { html } = await bea.open('audit-log');
    const days = Array.from(html.matchAll(/scope="rowgroup"[^>]*>([^<]*)</g), ([, day]) => day);
    assert.deepEqual(days, ['Today', 'Yesterday']);
    test.time.now += 86_400_000;
    const { visitor: cy } = await visitorWith(test, { name: 'Cy', roles: ['ADMIN'] });
    assert.match((await cy.open('audit-log')).text, /Yesterday .* Tuesday, January 1, 2030/);
  });

  it('is narrowed by key, actor, action, outcome and time', async () => {
    const rows = (html: string) => html.match(/<th scope="row" title/g)?.length ?? 0;
    await visitor.open('audit-log');
    assert.equal(rows((await visitor.submit('audit-log', { key: 'Deploy' })).html), 2);
    assert.equal(rows((await visitor.submit('audit-log', { action: 'UPDATE' })).html), 1);
    assert.match(visitor.page!.html, /<option value="UPDATE" selected/);
    assert.equal(rows((await visitor.submit('audit-log', { action: '', actor: 'tester', key: 'Ada' })).html), 1);
    const day = { key: '', actor: '', since: '2030-01-01', until: '2030-01-01' };
    assert.equal(rows((await visitor.submit('audit-log', day)).html), 3);
    const time = await visitor.submit('audit-log', { since: '2030-01-01T00:01', until: '2030-01-01T00:02' });
    assert.equal(rows(time.html), 1);
    assert.match(time.html, /name="since" value="2030-01-01T00:01"/);
    const refused = { since: '', until: '', outcome: 'REFUSED' };
    assert.match((await visitor.submit('audit-log', refused)).text, /No entries match Clear the filters/);
    assert.match(visitor.page!.html, /<option value="REFUSED" selected/);
    assert.equal(rows((await visitor.submit('audit-log', { outcome: 'DONE' })).html), 3);
    const before = await visitor.submit('audit-log', { since: '', until: '2029-12-31' });
    assert.match(before.text, /No entries match Clear the filters/);
  });

  it('can be narrowed to every action that there is', async () => {
    const { html } = await visitor.open('audit-log');
    const [, select = ''] = /<select name="action"[^>]*>(.*?)<\/select>/s.exec(html)!;
    const offered = Array.from(select.matchAll(/<option value="([A-Z_]+)"/g), ([, action]) => action);
    assert.deepEqual(offered, [...AUDIT_ACTIONS]);
  });

  it('reports a wrong filter, and keeps it', async () => {
    for (const path of [
      'audit-log?since=yesterday',
      'audit-log?until=31.12.',
      'audit-log?after=nonsense',
      'audit-log?key=%00',
    ]) {
      const { status, html, text } = await visitor.open(path);
      assert.equal(status, 400, path);
      assert.match(html, /role="alert"/);
      assert.doesNotMatch(text, /No entries/);
    }
    assert.match((await visitor.open('audit-log?since=yesterday')).html, /value="yesterday"/);
  });

  it('names the hours of the entries, with a link for each', async () => {
    test.time.now += 3 * 3_600_000;
    await query(test.url, 'svc_nonsense', '{ online }');
    await test.keys.finishActivity();
    const { visitor: bea } = await visitorWith(test, { name: 'Bea', roles: ['ADMIN'] });
    const { html, text } = await bea.open('audit-log?key=Deploy&plot=7d');
    assert.match(text, /2 entries · last 7 days/);
    const [, title = ''] = /<title>(Jan 1, 00:00, [^<]*)</.exec(html)!;
    assert.equal(title, 'Jan 1, 00:00, 2 entries');
    const all = await bea.open('audit-log');
    assert.match(all.text, /5 entries 1 refused · last 24 hours/);
    assert.match(all.text, /From, UTC Done Refused Jan 1, 03:00 1 1 Jan 1, 00:00 3 0/);
    const [, href = ''] = /<td><\/td>|<a href="\.\/(audit-log[^"]*)">Jan 1, 03:00/.exec(all.html)!;
    const hour = await bea.open(href.replaceAll('&amp;', '&'));
    assert.match(hour.text, /2 entries 1 refused · Jan 1, 03:00 to Jan 1, 04:00/);
    assert.match(hour.text, /Today now .* created Bea/);
    assert.doesNotMatch(hour.text, /Deploy/);
    assert.match(
      (await bea.open('audit-log?since=2029-11-01&until=2030-01-01')).text,
      /5 entries 1 refused · Nov 1 to/,
    );
  });

  it('says up to when the chain is verified, and which entry was changed after it was written', async () => {
    const { text } = await visitor.open('audit-log');
    assert.match(text, /Verified up to 00:01 UTC/);
    const broken = await startConsoleService();
    for (const name of ['One', 'Two']) await broken.keys.create({ name, roles: ['GUEST'] }, OPERATOR);
    await broken.stop();
    await unlockAuditLog(broken.database);
    await changeDirectly(broken.database, "update audit_log set actor_name = 'nobody' where number = 2");
    const other = await startConsoleService({ database: broken.database });
    const { visitor: bea } = await visitorWith(other, { name: 'Bea', roles: ['ADMIN'] });
    const alert = /role="alert">(.*?)<\/div>/s.exec((await bea.open('audit-log')).html)![1]!;
    assert.match(alert, /The log was tampered with\.<\/strong> Entry 2 was changed after it was written/);
    await other.stop();
  });

  it('is shown to keys that may read it, with names of keys that they may read', async () => {
    const { visitor: reader } = await visitorWith(test, { name: 'Docker', permissions: ['API_KEY:READ_OWN'] });
    assert.equal((await reader.open('audit-log')).status, 403);
    assert.match(reader.page!.text, /This key lacks LOGS:READ_ANY/);
    const { visitor: auditor } = await visitorWith(test, { name: 'Auditor', permissions: ['LOGS:READ_ANY'] });
    const { text } = await auditor.open('audit-log');
    assert.doesNotMatch(text, /Deploy/);
    assert.match(text, /API_KEY:READ_ANY shows all entries/);
    assert.doesNotMatch((await visitor.open('audit-log')).text, /shows all entries/);
  });
});
