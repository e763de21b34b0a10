import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import {
  APP,
  askDevice,
  authorizeUrl,
  exchange,
  fieldsIn,
  newPkce,
  openPage,
  pollDevice,
  postForm,
} from '../consent/support/consent.ts';
import { startConsoleService, type Visitor, visitorWith } from './support/console.ts';
import type { TestService } from '../../support/server.ts';

/** The fields of the button. */
const AGREE = { decision: 'approve' };

describe('what applications ask for, in the console', () => {
  let test: TestService;
  beforeEach(async () => {
    test = await startConsoleService({ consent: 'both', app: { clients: [APP] } });
  });
  afterEach(() => test.stop());

  const signedIn = async (fields: object = {}) =>
    (await visitorWith(test, { name: 'Ada', roles: ['ADMIN'], ...fields })).visitor;
  /** Enters a code. */
  const look = async (visitor: Visitor, code: string) => {
    await visitor.open('requests');
    return visitor.submit('device', { user_code: code });
  };
  /** The response to the application that polls for its key. */
  const answerTo = async (deviceCode: string) => {
    test.time.now += 10_000;
    return (await pollDevice(test.url, deviceCode)).body;
  };

  it('explains how an application asks, if there are no requests', async () => {
    const { text } = await (await signedIn()).open('requests');
    assert.match(
      text,
      new RegExp(`No open requests Requests appear here when someone runs svc-api login --server ${test.url}`),
    );
  });

  it('are listed with the application, its address and its request, and refused with one click', async () => {
    const { device_code, user_code } = await askDevice(test.url, {
      scope: 'DOCKER:READ_ANY VMS:READ_ANY role:GUEST',
      key_expires_in: '5d',
    });
    const visitor = await signedIn();
    const { text, html } = await visitor.open('requests');
    assert.match(
      text,
      /Grafana sync grafana-sync Reads its own key GUEST role Reads Docker and VMs DOCKER:READ_ANY VMS:READ_ANY direct for 5d 127\.0\.0\.1 now in 10 minutes Deny/,
    );
    assert.ok(!html.includes(user_code));
    const after = await visitor.submit('requests/refuse');
    assert.match(after.text, /Request denied/);
    assert.match(after.text, /No open requests/);
    assert.equal((await answerTo(device_code))['error'], 'access_denied');
    visitor.page = { ...after, html };
    const again = await visitor.submit('requests/refuse');
    assert.deepEqual([again.status, again.path], [200, after.path]);
  });

  it('that have a page of their own are listed, too', async () => {
    await openPage(authorizeUrl(test.url));
    assert.match((await (await signedIn()).open('requests')).text, /Grafana sync/);
  });

  it('are agreed to by the code that the application shows, in part and for a shorter time', async () => {
    const { device_code, user_code } = await askDevice(test.url, {
      scope: 'DOCKER:READ_ANY VMS:READ_ANY role:GUEST',
      key_expires_in: '60d',
    });
    const { visitor, principal } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] });
    const shown = await look(visitor, ` ${user_code.toLowerCase().replace('-', '')} `);
    assert.equal(shown.status, 200);
    assert.match(shown.text, /Grafana sync asks for an API key .* Requested from 127\.0\.0\.1/);
    assert.match(shown.text, /Reads its own key role:GUEST Limited access.*Reads Docker DOCKER:READ_ANY/);
    assert.match(shown.html, /<option value="asked" selected[^>]*>After 60d, as requested/);
    assert.doesNotMatch(shown.text, /Never/);
    const agreed = await visitor.submit('device', { ...AGREE, scope: 'VMS:READ_ANY', expiry: '7d' });
    assert.equal(agreed.status, 200);
    const [, name = ''] = /Its name is (Grafana sync \d{8} [A-Z]{6})/.exec(agreed.text) ?? [];
    assert.match((await visitor.open('requests')).text, /Grafana sync grafana-sync approved, not fetched yet/);
    const body = await answerTo(device_code);
    assert.equal(body['scope'], 'VMS:READ_ANY');
    const key = (await test.keys.findByName(name, OPERATOR))!;
    assert.deepEqual([key.permissions, key.createdBy], [['VMS:READ_ANY'], principal.apiKey.id]);
    assert.equal(key.expiresAt, test.time.now - 10_000 + 7 * 86_400_000);
  });

  it('are agreed to as they are asked, where nothing is changed', async () => {
    const { device_code, user_code } = await askDevice(test.url, { scope: 'DOCKER:READ_ANY', key_expires_in: '60d' });
    const visitor = await signedIn();
    await look(visitor, user_code);
    await visitor.submit('device', AGREE);
    const { scope, expires_in } = await answerTo(device_code);
    assert.deepEqual([scope, expires_in], ['DOCKER:READ_ANY', 60 * 86_400 - 10]);
  });

  it('are refused by the code, too', async () => {
    const { device_code, user_code } = await askDevice(test.url);
    const visitor = await signedIn();
    await look(visitor, user_code);
    assert.match((await visitor.submit('device', { decision: 'deny' })).text, /Grafana sync gets no key/);
    assert.equal((await answerTo(device_code))['error'], 'access_denied');
    const [entry] = await test.keys.audit.read({ first: 1 }, OPERATOR);
    assert.deepEqual([entry!.action, entry!.actor.name], ['CONSENT_DENY', 'Ada']);
  });

  it('are shown by their code to a key that may only create its own, with what it cannot grant', async () => {
    const { device_code, user_code } = await askDevice(test.url, {
      scope: 'DOCKER:READ_ANY VMS:READ_ANY role:VIEWER',
      key_expires_in: '60d',
    });
    const visitor = await signedIn({
      roles: [],
      permissions: ['API_KEY:CREATE_OWN', 'DOCKER:READ_ANY'],
      expiresIn: '20d',
    });
    const list = await visitor.open('requests');
    assert.equal(list.status, 200);
    assert.doesNotMatch(list.text, /Grafana sync|Open requests/);
    const shown = await look(visitor, user_code);
    assert.match(shown.html, /value="VMS:READ_ANY" disabled/);
    assert.match(shown.html, /value="role:VIEWER" disabled/);
    assert.match(shown.html, /<option value="latest" selected[^>]*>When your own key expires, 2030-01-21 00:00 UTC/);
    const more = await visitor.submit('device', { ...AGREE, scope: 'VMS:READ_ANY' });
    assert.equal(more.status, 403);
    assert.match(more.html, /role="alert"[^>]*>[^<]*cannot grant more than it holds/);
    await visitor.submit('device', { ...AGREE, scope: 'DOCKER:READ_ANY', expiry: 'latest' });
    assert.equal((await answerTo(device_code))['scope'], 'DOCKER:READ_ANY');
  });

  it('are not granted without any grant, or without a required expiry', async () => {
    const { user_code } = await askDevice(test.url);
    const visitor = await signedIn();
    await look(visitor, user_code);
    const none = await visitor.submit('device', { ...AGREE, scope: [] });
    assert.equal(none.status, 400);
    assert.match(none.text, /at least one role or permission/);
    const endless = await visitor.submit('device', { ...AGREE, scope: 'DOCKER:READ_ANY', expiry: 'date' });
    assert.match(endless.html, /id="expiry-problem"[^>]*>Choose a date/);
  });

  it('whose code is wrong, or was decided about, are said to be so', async () => {
    const { user_code } = await askDevice(test.url);
    const visitor = await signedIn();
    const form = await look(visitor, user_code);
    await visitor.submit('device', AGREE);
    visitor.page = form;
    assert.equal((await visitor.submit('device', AGREE)).status, 200);
    const other = await signedIn({ name: 'Somebody else' });
    other.page = form;
    const again = await other.submit('device', AGREE);
    assert.equal(again.status, 409);
    assert.match(again.text, /Sign out .*was already approved/);
    const hostile = await look(visitor, '"><b>');
    assert.equal(hostile.status, 404);
    assert.match(hostile.html, /&quot;&gt;&lt;b&gt;&quot; is not a code/);
    assert.match((await look(visitor, 'BBBB-BBBB')).text, /No application is waiting for this code/);
    assert.equal(visitor.page.status, 404);
  });

  it('are decided on the page that an application opens by the same session, without a key', async () => {
    const { visitor, principal } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'], expiresIn: '20d' });
    const { verifier, challenge } = newPkce();
    const address = authorizeUrl(test.url, { code_challenge: challenge, key_expires_in: '5d' });
    const shown = await visitor.open(`..${address.slice(test.url.length)}`);
    assert.match(shown.text, /Ada Sign out .*Redirects to/);
    assert.doesNotMatch(shown.html, /name="key"|<script/);
    const fields = [...fieldsIn(shown.html), ['decision', 'approve'], ['expiry', 'asked']] as [string, string][];
    const { headers } = await postForm(`${test.url}/oauth/authorize`, fields, { cookie: visitor.cookies });
    const code = new URL(headers.get('location')!).searchParams.get('code')!;
    const { body } = await exchange(test.url, code, verifier);
    assert.deepEqual([body['scope'], body['expires_in']], ['role:GUEST DOCKER:READ_ANY', 5 * 86_400]);
    const [created] = (await test.keys.list({ search: 'Grafana sync' }, OPERATOR)).keys;
    assert.equal(created!.createdBy, principal.apiKey.id);
  });

  it('are decided only by forms of our own pages, and not after the session has ended', async () => {
    const { user_code } = await askDevice(test.url);
    const visitor = await signedIn();
    const form = await look(visitor, user_code);
    const fields = [...fieldsIn(form.html), ['decision', 'approve']] as [string, string][];
    const agreeBy = (more: Record<string, string>) =>
      postForm(`${test.url}/device`, fields, { cookie: visitor.cookies, ...more });
    const foreign: Record<string, string>[] = [
      { 'sec-fetch-site': 'same-site' },
      { origin: 'null' },
      { origin: 'http://127.0.0.1:1' },
    ];
    for (const headers of foreign) assert.equal((await agreeBy(headers)).status, 403);
    const cookie = visitor.cookies;
    await visitor.submit('sign-out');
    const ended = await agreeBy({ cookie });
    assert.equal(ended.status, 400);
    assert.match(ended.text, /role="alert">Enter your own API key.*name="key"/s);
  });

  it('are also shown to a session that comes by a link of another site', async () => {
    const { user_code } = await askDevice(test.url);
    const visitor = await signedIn();
    const path = `/device?user_code=${user_code}`;
    const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
    // fetch does not allow these headers.
    const [response] = (await once(get(test.url + path, { headers: link }), 'response')) as [IncomingMessage];
    const followed = await text(response);
    assert.match(followed, new RegExp(`http-equiv="refresh" content="0; url=device\\?user_code=${user_code}"`));
    assert.match((await visitor.open(`..${path}`)).text, /Ada Sign out .*Grafana sync asks for an API key/);
  });

  it('are looked for only so often', async () => {
    const visitor = await signedIn();
    let page = await look(visitor, 'BBBB-BBBB');
    for (let tries = 1; tries <= 10; tries += 1) page = await look(visitor, 'BBBB-BBBB');
    assert.equal(page.status, 429);
    assert.match(
      page.text,
      /Too many codes tried from your address\. Try again in \d+ seconds?\..*Code shown by the application/,
    );
  });

  it('are hidden from a key that may create no keys', async () => {
    const visitor = await signedIn({ roles: ['VIEWER'] });
    assert.equal((await visitor.open('requests')).status, 403);
    assert.doesNotMatch(visitor.page!.html, /<form[^>]*action="[^"]*requests/);
  });
});
