import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import type { Page } from 'playwright-core';
import { openDoor } from '../../src/features/console/door.tsx';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { inBrowser } from '../support/browser.ts';
import { expectAccessible } from '../support/browser/accessible.ts';
import { Keyboard } from '../support/browser/keyboard.ts';
import { isHeaded, problem } from '../support/browser/page.ts';
import type { Visit } from '../support/browser/visit.ts';
import { PERMISSION, startGuarded } from '../features/guard/support/guard.ts';
import { createPrincipal } from '../support/keys.ts';

/** The constant in the accept key of a WebSocket handshake (RFC 6455, section 1.3). */
const WEBSOCKET = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** Starts a service with pages behind a guard, and creates a key. */
async function startWiki(visit: Visit) {
  const service = await startGuarded(
    ({ url }, outgoing) => {
      const page = `<!doctype html><html lang="en"><title>Wiki</title><h1>Wiki ${url}</h1><link rel="icon" href="data:,">`;
      outgoing.setHeader('content-type', 'text/html; charset=utf-8').end(page);
    },
    {
      loadDoor: openDoor,
      requirements: () => ({ allow: { kind: 'all', permissions: [PERMISSION], readOnly: false } }),
    },
  );
  service.upstream.on('upgrade', ({ headers }, socket) => {
    socket.on('error', () => {});
    const accept = hash('sha1', `${headers['sec-websocket-key']}${WEBSOCKET}`, 'base64');
    const head = ['101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: websocket'];
    socket.write(`HTTP/1.1 ${[...head, `Sec-WebSocket-Accept: ${accept}`].join('\r\n')}\r\n\r\n`);
  });
  visit.started(service.url, () => service.stop());
  visit.isSecret(service.secret);
  return service;
}

const headingAt = (url: string) => `Sign in to ${new URL(url).host}`;

/** Enters a key on the sign-in page. */
async function enter(page: Page, key: string): Promise<void> {
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Opens a WebSocket from a page of the service. @returns a function that waits for its end */
async function openSocket(page: Page): Promise<{ closed(): Promise<unknown> }> {
  await page.evaluate(`new Promise((resolve, reject) => {
    const socket = new WebSocket(location.origin.replace('http', 'ws') + '/live');
    window.closed = new Promise((done) => (socket.onclose = () => done(true)));
    socket.onopen = resolve;
    socket.onerror = reject;
  }).then(() => true)`);
  return { closed: () => page.evaluate('window.closed') };
}

describe('the door of a guarded service, in a browser', () => {
  it(
    'leads back to the part of the page that was asked for',
    inBrowser(async (visit) => {
      const service = await startWiki(visit);
      visit.expectTrouble(/^status 401: GET /);
      const page = await visit.open(`${service.url}/deep?a=1#part`);
      await isHeaded(page, headingAt(service.url));
      await page.keyboard.type(service.secret);
      await page.keyboard.press('Enter');
      await page.waitForURL(`${service.url}/deep?a=1#part`);
      await isHeaded(page, 'Wiki /deep?a=1');
    }),
  );

  it(
    'leads by a deep link to the page of the service, by the keyboard alone, on a telephone in the dark, without scripts',
    inBrowser(async (visit) => {
      const service = await startWiki(visit);
      visit.expectTrouble(/^status 401: GET /);
      for (const look of [{}, { width: 360, colorScheme: 'dark' }, { javaScript: false }] as const) {
        const page = await visit.open(`${service.url}/deep/link?a=1&b=2`, look);
        await isHeaded(page, headingAt(service.url));
        if (!('javaScript' in look)) await expectAccessible(page);
        const keyboard = new Keyboard(page);
        // The first stop, the field, already has the focus.
        const stops = ['button "Sign in"'];
        if (!('javaScript' in look)) assert.deepEqual(await keyboard.stops(), stops);
        await keyboard.tabTo(page.getByLabel('API key'));
        await keyboard.type(service.secret);
        await keyboard.press('Enter');
        await isHeaded(page, 'Wiki /deep/link?a=1&b=2');
        assert.equal(page.url(), `${service.url}/deep/link?a=1&b=2`);
        // Going back must not resubmit the form.
        await page.goto(`${service.url}/next`);
        await page.goBack();
        await isHeaded(page, 'Wiki /deep/link?a=1&b=2');
      }
    }),
  );

  it(
    'says what is wrong, who is signed in, and what a key lacks',
    inBrowser(async (visit) => {
      const service = await startWiki(visit);
      visit.expectTrouble(/^status 401: GET /);
      visit.expectTrouble(/^status 403: /);
      const page = await visit.open(`${service.url}/deep`);
      await enter(page, 'svc_nonsense');
      assert.match(await problem(page), /The API key is not valid/);
      await expectAccessible(page);
      await enter(page, service.secret);
      await isHeaded(page, 'Wiki /deep');
      await page.goto(`${service.url}/.svc-api/`);
      await isHeaded(page, 'Signed in');
      assert.match(await page.getByRole('main').innerText(), /with the key Caller/);
      await expectAccessible(page);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await isHeaded(page, headingAt(service.url));

      const { secret } = await createPrincipal(service.keys, { name: 'Guest', roles: ['GUEST'] });
      await enter(page, visit.isSecret(secret));
      await isHeaded(page, 'Not allowed');
      assert.match(await problem(page), /Your key lacks DASHBOARD:READ_ANY/);
      await expectAccessible(page);
      await page.getByRole('button', { name: 'Sign in with another key' }).click();
      await enter(page, service.secret);
      await isHeaded(page, 'Wiki /');
    }),
  );

  it(
    'closes what is open when the person signs out elsewhere, or the key is deleted',
    inBrowser(async (visit) => {
      const service = await startWiki(visit);
      visit.expectTrouble(/^status 401: GET /);
      const { secret, principal } = await createPrincipal(service.keys, { name: 'Bea', permissions: [PERMISSION] });
      const page = await visit.open(`${service.url}/a`);
      await enter(page, visit.isSecret(secret));
      await isHeaded(page, 'Wiki /a');
      const socket = await openSocket(page);
      const other = await visit.open(`${service.url}/.svc-api/`, page.context());
      await other.getByRole('button', { name: 'Sign out' }).click();
      await socket.closed();
      await page.reload();
      await isHeaded(page, headingAt(service.url));

      await enter(page, secret);
      await isHeaded(page, 'Wiki /a');
      const again = await openSocket(page);
      await service.keys.delete([principal.apiKey.id], OPERATOR);
      await again.closed();
      await page.reload();
      await isHeaded(page, headingAt(service.url));
    }),
  );

  it(
    'takes a key once on a slow connection, however often the button is pressed, and is not behind the page after that',
    inBrowser(async (visit) => {
      const service = await startWiki(visit);
      visit.expectTrouble(/^status 401: GET /);
      const page = await visit.open(`${service.url}/deep`);
      const session = await page.context().newCDPSession(page);
      const slow = { offline: false, latency: 1500, downloadThroughput: -1, uploadThroughput: -1 };
      await session.send('Network.emulateNetworkConditions', slow);
      await page.getByLabel('API key').fill(service.secret);
      await page.getByRole('button', { name: 'Sign in' }).dblclick();
      await isHeaded(page, 'Wiki /deep');
      await session.send('Network.emulateNetworkConditions', { ...slow, latency: 0 });
      await page.goto(`${service.url}/next`);
      for (const [go, path] of [
        ['goBack', '/deep'],
        ['goForward', '/next'],
        ['goBack', '/deep'],
      ] as const) {
        await page[go]();
        await isHeaded(page, `Wiki ${path}`);
      }
    }),
  );

  it(
    'is that of one host: another one asks for a key again',
    inBrowser(async (visit) => {
      const service = await startWiki(visit);
      visit.expectTrouble(/^status 401: GET /);
      const other = await service.beside({}, '127.0.0.2');
      visit.started(other, async () => {});
      const page = await visit.open(`${service.url}/a`);
      await enter(page, service.secret);
      await isHeaded(page, 'Wiki /a');
      const [lax, strict, ...none] = await page.context().cookies();
      assert.deepEqual(none, []);
      assert.deepEqual(
        [lax, strict].map((cookie) => [cookie!.name, cookie!.httpOnly, cookie!.sameSite, cookie!.domain]),
        [
          ['svc_api_session_lax', true, 'Lax', '127.0.0.1'],
          ['svc_api_session', true, 'Strict', '127.0.0.1'],
        ],
      );
      visit.isSecret(lax!.value);
      await page.goto(`${other}/b`);
      await isHeaded(page, headingAt(other));
      // Not even with the cookie copied to that host.
      await page.context().addCookies([lax!, strict!].map((cookie) => ({ ...cookie, domain: '127.0.0.2' })));
      await page.goto(`${other}/b`);
      await isHeaded(page, headingAt(other));
      await enter(page, service.secret);
      await isHeaded(page, 'Wiki /b');
      await page.goto(`${service.url}/a`);
      await isHeaded(page, 'Wiki /a');
    }),
  );

  it(
    'lets links from other sites in, but not their forms',
    inBrowser(async (visit) => {
      const service = await startWiki(visit);
      visit.expectTrouble(/^status 401: /);
      const page = await visit.open(service.url);
      await enter(page, service.secret);
      await isHeaded(page, 'Wiki /');
      const evil = await visit.site(
        `<!doctype html><title>Evil</title><link rel="icon" href="data:,"><a href="${service.url}/deep">Link</a>
        <form method="post" action="${service.url}/deep"><button>Do it</button></form>
        <form method="post" action="${service.url}/.svc-api/sign-in"><input name="key" value="${service.secret}">
        <button>Be somebody</button></form>`,
        '127.0.0.2',
      );
      await page.goto(evil.url);
      await page.getByRole('link', { name: 'Link' }).click();
      await isHeaded(page, 'Wiki /deep');
      await page.goto(evil.url);
      await page.getByRole('button', { name: 'Do it' }).click();
      await isHeaded(page, headingAt(service.url));

      const stranger = await visit.open(evil.url);
      visit.expectTrouble(/^status 403: POST \S+\/\.svc-api\/sign-in$/);
      await stranger.getByRole('button', { name: 'Be somebody' }).click();
      await isHeaded(stranger, 'Not allowed');
      assert.deepEqual(await stranger.context().cookies(), []);
    }),
  );
});
