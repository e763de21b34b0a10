import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { startConsoleService, Visitor, visitorWith } from './support/console.ts';
import { insertKeys } from '../../support/insert-keys.ts';
import { createPrincipal, storedKey } from '../../support/keys.ts';
import type { TestService } from '../../support/server.ts';

describe('the list of keys in the console', () => {
  let test: TestService;
  let visitor: Visitor;
  beforeEach(async () => {
    test = await startConsoleService();
    ({ visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] }));
  });
  afterEach(() => test.stop());

  /** Creates a key a moment after the previous one, so that their order is known. */
  const create = (name: string, more: object = {}) => {
    test.time.now += 1;
    return test.keys.create({ name, permissions: ['DOCKER:READ_ANY'], ...more }, OPERATOR);
  };
  /** The names in the rows, in order. */
  const namesIn = (html: string) => Array.from(html.matchAll(/<th scope="row"><a[^>]*>([^<]*)</g), ([, name]) => name);

  it('has names, status, grants, last use and end, with exact times beside relative ones', async () => {
    await create('Backup', {
      expiresIn: '30d',
      permissions: ['DOCKER:READ_ANY', 'DISK:READ_ANY', 'VMS:READ_ANY', 'LOGS:READ_ANY'],
    });
    const { text, html } = await visitor.open('keys');
    assert.match(text, /Backup svc_\w{12}_… active Reads disk, Docker, logs and VMs never in 30 days now/);
    assert.match(html, /<time datetime="2030-01-31T00:00:00\.001Z" title="2030-01-31 00:00:00 UTC">in 30 days<\/time>/);
  });

  it('offers no new key to a session by a previous secret', async () => {
    const { visitor: bea, principal } = await visitorWith(test, { name: 'Bea', roles: ['ADMIN'] });
    assert.match((await bea.open('keys')).text, /New key/);
    await test.keys.rotate(principal.apiKey.id, { grace: '1h' }, OPERATOR);
    const { path, text } = await bea.open('keys');
    assert.equal(path, 'keys');
    assert.doesNotMatch(text, /New key/);
  });

  it('is searched, and narrowed to a status', async () => {
    await create('Backup nightly');
    const off = await create('Deploy', { description: 'no backup' });
    await test.keys.setEnabled(off.apiKey.id, false, OPERATOR);
    await visitor.open('keys');
    assert.deepEqual(namesIn((await visitor.submit('keys', { search: 'BACKUP' })).html), ['Deploy', 'Backup nightly']);
    assert.deepEqual(namesIn((await visitor.submit('keys', { status: 'DISABLED' })).html), ['Deploy']);
    assert.match(visitor.page!.html, /value="BACKUP"/);
    const nothing = await visitor.submit('keys', { search: 'nobody', status: '' });
    assert.match(nothing.text, /No keys match\. Show all keys/);
  });

  it('is filtered by owner, by tags, and by keys unused for long', async () => {
    await create('Mine', { owner: 'Payments team', tags: ['env=prod', 'a=b'] });
    await create('Other', { tags: ['env=prod'] });
    assert.deepEqual(namesIn((await visitor.open('keys?by=payments+team')).html), ['Mine']);
    assert.deepEqual(namesIn((await visitor.open('keys?tag=env%3Dprod')).html), ['Other', 'Mine']);
    assert.deepEqual(namesIn((await visitor.open('keys?tag=env%3Dprod%2C+a%3Db')).html), ['Mine']);
    assert.match((await visitor.open('keys?tag=env%3Dnone')).text, /Clear.*No keys match\. Show all keys/);
    assert.match((await visitor.open('keys?tag=env')).text, /"env" is not a tag\. Write key=value/);
    assert.match((await visitor.open('keys?used=90d')).text, /No keys match\./);
    await insertKeys(test.keys, [storedKey('Old', { createdAt: Date.parse('2029-09-01T00:00:00Z') })]);
    assert.deepEqual(namesIn((await visitor.open('keys?used=90d')).html), ['Old']);
  });

  it('continues over pages that keep their place', async () => {
    for (let count = 1; count <= 230; count += 1) await create(`Key ${count}`);
    const first = await visitor.open('keys?search=Key');
    assert.deepEqual([namesIn(first.html).length, namesIn(first.html)[0]], [100, 'Key 230']);
    assert.match(first.text, /Keys 230 .* 1–100 of 230 Next Last$/);
    const linkOf = (name: string) =>
      new RegExp(`href="\\./(keys\\?[^"]*)"[^>]*>${name}<`).exec(visitor.page!.html)![1]!.replaceAll('&amp;', '&');
    const second = await visitor.open(linkOf('Next'));
    assert.equal(namesIn(second.html)[0], 'Key 130');
    assert.match(second.text, / 101–200 of 230 First Previous Next Last$/);
    const last = await visitor.open(linkOf('Last'));
    assert.deepEqual([namesIn(last.html).length, namesIn(last.html).at(-1)], [30, 'Key 1']);
    assert.match(last.text, / 201–230 of 230 First Previous$/);
    await visitor.open(linkOf('Previous'));
    assert.match(visitor.page!.text, / 101–200 of 230 /);
    assert.match((await visitor.open('keys?from=901')).text, /There are no keys on this page\. Show all keys/);
  });

  it('is sorted by its columns, both ways, and keeps its filters', async () => {
    await create('Key 10', { expiresIn: '1d' });
    await create('Key 9', { expiresIn: '9d' });
    await create('Key 100');
    const sortBy = async (column: string) => {
      const [, href = ''] = new RegExp(`<a href="\\./([^"]*)">${column}`).exec(visitor.page!.html)!;
      return namesIn((await visitor.open(href.replaceAll('&amp;', '&'))).html);
    };
    await visitor.open('keys?search=Key');
    assert.match(visitor.page!.html, /<th scope="col" aria-sort="descending"><a [^>]*>Created/);
    assert.deepEqual(await sortBy('Name'), ['Key 9', 'Key 10', 'Key 100']);
    assert.match(visitor.page!.html, /<th scope="col" aria-sort="ascending"><a [^>]*>Name/);
    assert.deepEqual(await sortBy('Name'), ['Key 100', 'Key 10', 'Key 9']);
    assert.deepEqual(await sortBy('Expires'), ['Key 10', 'Key 9', 'Key 100']);
    assert.deepEqual(await sortBy('Created'), ['Key 100', 'Key 9', 'Key 10']);
    assert.deepEqual(await sortBy('Created'), ['Key 10', 'Key 9', 'Key 100']);
    assert.match(visitor.page!.html, /value="Key"/);
  });

  it('is filtered by a role, a creator, an expiry and keys that were never used', async () => {
    test.time.now += 1;
    const { principal } = await createPrincipal(test.keys, { name: 'Team', roles: ['ADMIN'] });
    test.time.now += 1;
    await test.keys.create({ name: 'Of team', roles: ['VIEWER'], expiresIn: '3d' }, principal);
    await create('Ends late', { expiresIn: '60d' });
    const narrowed = async (fields: Record<string, string>) => {
      await visitor.open('keys');
      return namesIn((await visitor.submit('keys', fields)).html);
    };
    assert.deepEqual(await narrowed({ role: 'VIEWER' }), ['Of team']);
    assert.deepEqual(await narrowed({ by: 'Team' }), ['Of team', 'Team']);
    assert.deepEqual(await narrowed({ by: principal.apiKey.id }), ['Of team']);
    assert.deepEqual(await narrowed({ by: 'operator' }), ['Ends late', 'Team', 'Ada']);
    assert.deepEqual(await narrowed({ ends: '7d' }), ['Of team']);
    assert.deepEqual(await narrowed({ ends: '90d', by: 'operator' }), ['Ends late']);
    assert.deepEqual((await narrowed({ used: 'never' })).length, 4);
    await visitor.open('keys');
    const unknown = await visitor.submit('keys', { by: 'Nobody' });
    assert.match(unknown.text, /No keys match\./);
    assert.match(unknown.html, /value="Nobody"/);
  });

  it('has only its own keys for one that may see no others', async () => {
    await create('Of others');
    const { principal, secret } = await createPrincipal(test.keys, {
      name: 'Bea',
      permissions: ['API_KEY:READ_OWN', 'API_KEY:CREATE_OWN'],
    });
    test.time.now += 1;
    await test.keys.create({ name: 'Of Bea', permissions: ['API_KEY:READ_OWN'] }, principal);
    const bea = new Visitor(test.url);
    await bea.signIn(secret);
    assert.deepEqual(namesIn((await bea.open('keys')).html), ['Of Bea', 'Bea']);
  });

  it('offers what the key may, and nothing else', async () => {
    assert.match((await visitor.open('keys')).text, /Keys Approvals Audit log Routes Limits Health/);
    assert.match(visitor.page!.text, /New key/);
    const { visitor: reader } = await visitorWith(test, { name: 'Reader', permissions: ['API_KEY:READ_ANY'] });
    const { text } = await reader.open('keys');
    assert.doesNotMatch(text, /New key|Requests|Audit log|Routes|Health/);
  });

  it('shows what others wrote as text', async () => {
    await create('Hostile', { description: '"><img src=x onerror=alert(1)>' });
    for (const path of [
      'keys',
      'keys?search=%22%3E%3Cscript%3Ealert(1)%3C/script%3E',
      'keys?status=%3Cb%3E&after=%3Cb%3E',
    ]) {
      const { html } = await visitor.open(path);
      assert.doesNotMatch(html, /<img|<script>|<b>/, path);
    }
  });

  it('ignores unknown parameters', async () => {
    for (const query of ['status=nonsense', 'sort=nonsense&order=nonsense', 'from=-1', 'ends=1000d', 'after=x']) {
      const { status, html } = await visitor.open(`keys?${query}`);
      assert.deepEqual([status, namesIn(html)], [200, ['Ada']], query);
    }
  });
});
