import assert from 'node:assert/strict';
import { APP, askDevice } from '../consent/support/consent.ts';
import { startConsoleService, Visitor, visitorWith } from './support/console.ts';
import type { TestService } from '../../support/server.ts';

const PUBLIC = 'https://keys.example.org';

describe('the shell of console, consent and sign-in', () => {
  let test: TestService;
  beforeEach(async () => {
    test = await startConsoleService({ consent: 'both', app: { clients: [APP] } });
  });
  afterEach(() => test.stop());

  it('names the service, also before signing in', async () => {
    const { host } = new URL(test.url);
    const stranger = new Visitor(test.url);
    for (const path of ['sign-in', '../device', 'nothing']) {
      const { text } = await stranger.open(path);
      assert.ok(text.startsWith(`Skip to the content svc-api ${host} `), text.slice(0, 80));
      assert.doesNotMatch(text, /Signed in as|Sign out/);
    }
  });

  it('names the signed-in person on every page, with a way to sign out', async () => {
    const { host } = new URL(test.url);
    const { visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] });
    const { user_code: code } = await askDevice(test.url, { scope: 'DOCKER:READ_ANY API_KEY:CREATE_OWN' });
    for (const path of ['', 'keys', 'requests', '../device', `../device?user_code=${code}`, 'nothing']) {
      const { text } = await visitor.open(path);
      assert.ok(text.startsWith(`Skip to the content svc-api ${host} Signed in as Ada Sign out Home Keys`), path);
    }
  });

  it('names the host that browsers know, where that is configured', async () => {
    const other = await startConsoleService({ app: { publicUrl: PUBLIC } });
    try {
      const { text } = await new Visitor(other.url).open('sign-in');
      assert.match(text, /^Skip to the content svc-api keys\.example\.org Sign in/);
    } finally {
      await other.stop();
    }
  });

  it('describes a request in words, with the codes beside them, and that a key could create others', async () => {
    const { visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] });
    const { user_code: code } = await askDevice(test.url, { scope: 'DOCKER:READ_ANY API_KEY:CREATE_OWN role:VIEWER' });
    const { text, html } = await visitor.open(`../device?user_code=${code}`);
    assert.match(text, /Reads everything except credentials role:VIEWER Read-only access/);
    assert.match(text, /Reads Docker DOCKER:READ_ANY .*can create further keys API_KEY:CREATE_OWN/);
    assert.match(html, /<span class="tag warning"[^>]*>can create further keys/);
    assert.match((await visitor.open('requests')).text, /can create further keys API_KEY:CREATE_OWN direct/);
  });
});
