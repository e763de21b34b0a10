import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { startConsoleService, type Visitor, visitorWith } from './support/console.ts';
import { authenticate, createPrincipal } from '../../support/keys.ts';
import type { TestService } from '../../support/server.ts';

describe('containing a key in the console', () => {
  let test: TestService;
  let visitor: Visitor;
  let id: string;
  let secret: string;
  beforeEach(async () => {
    test = await startConsoleService();
    ({ visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] }));
    const { principal } = await createPrincipal(test.keys, { name: 'Ops', roles: ['ADMIN'] });
    id = principal.apiKey.id;
    const { apiKey } = await test.keys.create({ name: 'CI', roles: ['VIEWER'] }, OPERATOR);
    secret = (await test.keys.rotate(apiKey.id, { grace: '90d', activate: 'on-first-use' }, principal)).key;
  });
  afterEach(() => test.stop());
  const isOver = async () => 'refused' in (await authenticate(test.keys, secret));

  it('goes from the page of the key to a plan, and by one button from there', async () => {
    const page = await visitor.open(`keys/${id}`);
    assert.match(page.text, /Changes to other keys .*Issued a secret for CI/);
    assert.match(page.html, new RegExp(`<a class="button danger" href="[^"]*keys/${id}/contain">`));
    const plan = await visitor.open(`keys/${id}/contain`);
    assert.match(
      plan.text,
      /Contain Ops\? .*This will disable 1 key, change 1 key in other ways\. .*Issued a secret for CI .*What will change CI prefix svc_.*1 key to disable Ops/,
    );
    assert.doesNotMatch(plan.text, /\d keys? disabled/, 'nothing is yet');
    const done = await visitor.submit('/contain');
    assert.match(done.text, /Contained 1 key disabled, 1 key changed in other ways\. .*What has changed CI/);
    assert.equal(await isOver(), true);
    assert.match((await visitor.open(`keys/${id}/contain`)).text, /There is nothing to undo/);
  });

  it('names keys as disabled that are so already', async () => {
    await test.keys.setEnabled((await test.keys.findByName('CI', OPERATOR))!.id, false, OPERATOR);
    const said = /Issued a secret for CI \(disabled\)/;
    assert.match((await visitor.open(`keys/${id}`)).text, said);
    assert.match((await visitor.open(`keys/${id}/contain`)).text, said);
  });

  it('is offered after a deletion, and works then', async () => {
    await visitor.open(`keys/${id}/delete`);
    const deleted = await visitor.submit('/delete', { name: 'Ops' });
    assert.match(
      deleted.text,
      /Deleted 1 key: Ops Changes to other keys .*Issued a secret for CI .*If the key leaked, undo these changes \./,
    );
    assert.match((await visitor.open(`keys/${id}/contain`)).text, /← All keys Contain Ops\?/);
    await visitor.submit('/contain');
    assert.equal(await isOver(), true);
    assert.equal((await visitor.open(`keys/${id}/contain`)).status, 404);
  });

  it('is refused without the permission', async () => {
    const { visitor: bea } = await visitorWith(test, { name: 'Bea', permissions: ['API_KEY:READ_ANY'] });
    assert.doesNotMatch((await bea.open(`keys/${id}`)).html, /\/contain"/);
    assert.equal((await bea.open(`keys/${id}/contain`)).status, 403);
  });
});
