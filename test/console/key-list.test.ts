import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { startConsoleService, Visitor, visitorWith } from '../support/console.ts';
import { createPrincipal } from '../support/keys.ts';
import type { TestService } from '../support/server.ts';

describe('the list of keys in the console', () => {
  let test: TestService;
  let visitor: Visitor;
  beforeEach(async () => {
    test = await startConsoleService();
    ({ visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] }));
  });
  afterEach(() => test.stop());

  /** Each a moment after the one before, so that their order is known. */
  const create = (name: string, more: object = {}) => {
    test.time.now += 1;
    return test.keys.create({ name, permissions: ['DOCKER:READ_ANY'], ...more }, OPERATOR);
  };
  /** The names in the rows, in their order. */
  const namesIn = (html: string) => Array.from(html.matchAll(/<th scope="row"><a[^>]*>([^<]*)</g), ([, name]) => name);

  it('has names, status, grants, last use and end, with exact times beside relative ones', async () => {
    await create('Backup', {
      expiresIn: '30d',
      permissions: ['DOCKER:READ_ANY', 'DISK:READ_ANY', 'VMS:READ_ANY', 'LOGS:READ_ANY'],
    });
    const { text, html } = await visitor.open('keys');
    assert.match(
      text,
      /Backup svc_\w{12}_… active DOCKER:READ_ANY DISK:READ_ANY VMS:READ_ANY and 1 more never in 30 days/,
    );
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
    assert.deepEqual(namesIn((await visitor.submit('keys', { search: 'BACKUP' })).html), ['Backup nightly', 'Deploy']);
    assert.deepEqual(namesIn((await visitor.submit('keys', { status: 'DISABLED' })).html), ['Deploy']);
    assert.match(visitor.page!.html, /value="BACKUP"/);
    const nothing = await visitor.submit('keys', { search: 'nobody', status: '' });
    assert.match(nothing.text, /No key matches\. Show all keys/);
  });

  it('goes on over pages', async () => {
    for (let count = 1; count <= 60; count += 1) await create(`Key ${String(count).padStart(2, '0')}`);
    const first = await visitor.open('keys?search=Key');
    assert.equal(namesIn(first.html).length, 50);
    assert.doesNotMatch(first.text, /First page/);
    const [, next = ''] = /href="\.\/(keys\?[^"]*after=[^"]*)"/.exec(first.html)!;
    const second = await visitor.open(next.replaceAll('&amp;', '&'));
    assert.deepEqual([namesIn(second.html).length, namesIn(second.html).at(-1)], [10, 'Key 60']);
    assert.match(second.text, /First page/);
    assert.doesNotMatch(second.text, /Next page/);
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
    assert.match((await visitor.open('keys')).text, /Keys Requests Audit log Routes Limits Health/);
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

  it('says what is wrong with a page that does not exist', async () => {
    const { status, text } = await visitor.open('keys?after=nonsense');
    assert.equal(status, 400);
    assert.match(text, /"after" is not a cursor of this list/);
  });
});
