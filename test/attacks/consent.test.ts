import assert from 'node:assert/strict';
import { OPERATOR, type Principal } from '../../src/keys/authorization/principal.ts';
import { sourceOf } from '../../src/keys/basics/source.ts';
import {
  agree,
  APP,
  askDevice,
  authorizeUrl,
  CALLBACK,
  codeFor,
  exchange,
  newPkce,
  openPage,
  pollDevice,
  postForm,
  postJson,
  startConsentService,
} from '../features/consent/support/consent.ts';
import { CONSENTS } from '../../src/features/consent/consent-request.ts';
import { describeOnEach } from '../support/dialects.ts';
import { authenticate, createPrincipal } from '../support/keys.ts';
import { collectingLog } from '../support/log.ts';
import { startServer, type TestService } from '../support/server.ts';
import { Consent } from '../../src/features/consent/consent.ts';

let test: TestService;
let approver: string;
let principal: Principal;

async function start() {
  test = await startConsentService();
  const fields = { name: 'Anna', roles: ['VIEWER'], permissions: ['API_KEY:CREATE_OWN'] };
  ({ secret: approver, principal } = await createPrincipal(test.keys, fields));
}
const accepts = async (key: unknown) => 'principal' in (await authenticate(test.keys, key as string));
const actions = async () =>
  (await test.keys.audit.read({ first: 10 }, OPERATOR)).map(({ action }) => action).toReversed();

/** A device code with its verifier. */
async function newCode(parameters: Record<string, string> = {}) {
  const { verifier, challenge } = newPkce();
  return { verifier, code: await codeFor(test.url, approver, { code_challenge: challenge, ...parameters }) };
}

/** An approved application that has not fetched its key yet. */
async function agreedDevice() {
  const device = await askDevice(test.url);
  const { fields } = await openPage(`${test.url}/device?user_code=${device.user_code}`);
  assert.equal((await agree(test.url, fields, approver)).status, 200);
  return device;
}

describeOnEach('an attack on the way to a key', () => {
  beforeEach(start);
  afterEach(() => test.stop());

  describe('with a code', () => {
    it('that was used, gets nothing, and ends the key that it gave, and what that has created', async () => {
      const { code, verifier } = await newCode();
      const { status, body } = await exchange(test.url, code, verifier);
      assert.deepEqual([status, await accepts(body['access_token'])], [200, true]);
      test.time.now += 10_000;
      const again = await exchange(test.url, code, verifier);
      assert.deepEqual([again.status, again.body['error']], [400, 'invalid_grant']);
      assert.equal(await accepts(body['access_token']), false);
      assert.deepEqual((await actions()).slice(-6), [
        'CONSENT_REQUEST',
        'CONSENT_APPROVE',
        'CREATE',
        'CONSENT_EXCHANGE',
        'CONSENT_REPLAY',
        'DELETE',
      ]);
      await exchange(test.url, code, verifier);
      assert.equal((await actions()).filter((action) => action === 'CONSENT_REPLAY').length, 1);
    });

    it('that was used for a device, ends that key, too', async () => {
      const { device_code: code } = await agreedDevice();
      const { body } = await pollDevice(test.url, code);
      assert.equal(await accepts(body['access_token']), true);
      assert.equal((await pollDevice(test.url, code)).body['error'], 'invalid_grant');
      assert.equal(await accepts(body['access_token']), false);
    });

    it('of two exchanges at once, or within seconds by the same verifier, has one key, which works', async () => {
      const { code, verifier } = await newCode();
      const both = await Promise.all([exchange(test.url, code, verifier), exchange(test.url, code, verifier)]);
      test.time.now += 9999;
      const all = [...both, await exchange(test.url, code, verifier)];
      const key = both[0].body['access_token'];
      for (const { status, body } of all) assert.deepEqual([status, body['access_token']], [200, key]);
      assert.equal(await accepts(key), true);
      const made = (await actions()).filter((action) => action === 'CREATE' || action.startsWith('CONSENT_'));
      assert.deepEqual(made.slice(-3), ['CONSENT_APPROVE', 'CREATE', 'CONSENT_EXCHANGE']);
    });

    it('that was just used, brings no key that has ended or was rotated since', async () => {
      for (const end of ['delete', 'rotate'] as const) {
        const { code, verifier } = await newCode();
        const { body } = await exchange(test.url, code, verifier);
        const { principal: own } = (await authenticate(test.keys, body['access_token'] as string)) as {
          principal: Principal;
        };
        if (end === 'delete') await test.keys.delete([own.apiKey.id], OPERATOR);
        else await test.keys.rotate(own.apiKey.id, { grace: '0s' }, OPERATOR);
        const again = await exchange(test.url, code, verifier);
        assert.deepEqual([again.status, again.body['error']], [400, 'invalid_grant'], end);
      }
    });

    it('for another client, another redirect or another verifier, gets nothing, and ends nothing', async () => {
      const { code, verifier } = await newCode();
      const wrong = [
        exchange(test.url, code, verifier, { client_id: 'svc-api' }),
        exchange(test.url, code, verifier, { redirect_uri: `${CALLBACK}/` }),
        exchange(test.url, code, newPkce().verifier),
        exchange(test.url, code, verifier.slice(0, -1)),
        exchange(test.url, code, ''),
        exchange(test.url, `${code}A`, verifier),
      ];
      for (const { status, body } of await Promise.all(wrong)) {
        assert.equal(status, 400);
        assert.match(body['error'] as string, /^invalid_(grant|request)$/);
        assert.equal(body['access_token'], undefined);
      }
      const { status, body } = await exchange(test.url, code, verifier);
      assert.equal(status, 200, 'whoever has it rightly still gets the key');
      assert.equal((await exchange(test.url, code, newPkce().verifier)).body['error'], 'invalid_grant');
      assert.equal(await accepts(body['access_token']), true, 'a code from a log ends no key without its verifier');
    });

    it('of one kind, cannot use it as another', async () => {
      const { code, verifier } = await newCode();
      const device = await agreedDevice();
      assert.equal((await pollDevice(test.url, code)).body['error'], 'invalid_grant');
      assert.equal((await exchange(test.url, device.device_code, verifier)).body['error'], 'invalid_grant');
      assert.equal((await pollDevice(test.url, device.user_code)).body['error'], 'invalid_grant');
    });

    it('that has ended, gets nothing: after a minute of a redirect, after ten of a request', async () => {
      const { code, verifier } = await newCode();
      const device = await askDevice(test.url);
      test.time.now += 60_000;
      assert.equal((await exchange(test.url, code, verifier)).body['error'], 'invalid_grant');
      test.time.now += 540_000;
      assert.equal((await pollDevice(test.url, device.device_code)).body['error'], 'expired_token');
      assert.equal((await openPage(`${test.url}/device?user_code=${device.user_code}`)).status, 404);
    });

    it('that is invalid, or for another client, starts no transaction, however often it is sent', async () => {
      const { code, verifier } = await newCode();
      const { device_code: pending } = await askDevice(test.url);
      const latest = test.store.repository.write.bind(test.store.repository);
      const writes: unknown[] = [];
      test.store.repository.write = (...args) => {
        writes.push(args);
        return latest(...args);
      };
      for (const attempt of [
        exchange(test.url, 'nonsense', verifier),
        exchange(test.url, code, newPkce().verifier),
        pollDevice(test.url, 'nonsense'),
        pollDevice(test.url, pending),
      ])
        assert.equal((await attempt).status, 400);
      assert.deepEqual(writes, []);
      assert.equal((await exchange(test.url, code, verifier)).status, 200);
      assert.equal(writes.length, 1);
    });

    it('cannot take it without a challenge, or with a plain one', async () => {
      const wrong: Record<string, string>[] = [
        { code_challenge: '' },
        { code_challenge_method: 'plain' },
        { code_challenge_method: '' },
        { code_challenge: 'short' },
      ];
      for (const parameters of wrong) {
        const { status, headers } = await openPage(authorizeUrl(test.url, parameters));
        const back = new URL(headers.get('location')!);
        assert.deepEqual([status, back.searchParams.get('error')], [303, 'invalid_request']);
        assert.deepEqual([back.searchParams.get('state'), back.searchParams.get('iss')], ['the state', test.url]);
      }
    });
  });

  describe('with a person who approves', () => {
    it('cannot get more than they hold', async () => {
      const beyond = [
        'DOCKER:UPDATE_ANY',
        'role:ADMIN',
        'role:CONNECT',
        'API_KEY:READ_ANY',
        'DOCKER:READ_ANY DOCKER:DELETE_OWN',
      ];
      for (const scope of beyond) {
        const { fields } = await openPage(authorizeUrl(test.url, { scope }));
        const { status, text } = await agree(test.url, fields, approver);
        assert.equal(status, 403, scope);
        assert.match(text, /cannot grant more than it holds/);
      }
    });

    it('who may create no keys gets no key', async () => {
      const { secret } = await createPrincipal(test.keys, { name: 'Reader', roles: ['VIEWER'] });
      const { fields } = await openPage(authorizeUrl(test.url));
      const { status, text } = await agree(test.url, fields, secret);
      assert.equal(status, 403);
      assert.match(text, /lacks API_KEY:CREATE_OWN/);
    });

    const changes: Record<string, (id: string) => Promise<unknown>> = {
      'was narrowed': (id) => test.keys.update(id, { roles: ['GUEST'] }, OPERATOR),
      'may create none any more': (id) => test.keys.update(id, { permissions: [] }, OPERATOR),
      'was disabled': (id) => test.keys.setEnabled(id, false, OPERATOR),
      'was rotated': (id) => test.keys.rotate(id, { grace: '1h' }, OPERATOR),
      'has ended': async (id) => {
        await test.keys.update(id, { expiresIn: '30s' }, OPERATOR);
        test.time.now += 30_000;
      },
      'was deleted': (id) => test.keys.delete([id], OPERATOR),
    };
    for (const [what, change] of Object.entries(changes))
      it(`whose key ${what} since gets no key`, async () => {
        const { code, verifier } = await newCode();
        const { device_code: device } = await agreedDevice();
        await change(principal.apiKey.id);
        assert.equal((await exchange(test.url, code, verifier)).body['error'], 'invalid_grant');
        assert.equal((await pollDevice(test.url, device)).body['error'], 'access_denied');
        assert.deepEqual((await test.keys.list({ search: 'Grafana sync' }, OPERATOR)).keys, []);
      });

    it('by a key from outside its networks, or over its limit, gets no key', async () => {
      const { id } = principal.apiKey;
      await test.keys.update(id, { allowFrom: ['10.0.0.0/8'] }, OPERATOR);
      const { fields } = await openPage(authorizeUrl(test.url));
      const elsewhere = await agree(test.url, fields, approver);
      assert.deepEqual([elsewhere.status, elsewhere.text.includes('cannot be used from this address')], [403, true]);
      await test.keys.update(id, { allowFrom: null, limits: ['1/h'] }, OPERATOR);
      assert.equal((await agree(test.url, fields, approver)).status, 303);
      const { fields: more } = await openPage(authorizeUrl(test.url));
      const over = await agree(test.url, more, approver);
      assert.deepEqual([over.status, over.headers.has('retry-after')], [429, true]);
    });

    it('by a previous secret gets no key', async () => {
      await test.keys.rotate(principal.apiKey.id, { grace: '1h' }, OPERATOR);
      const { fields } = await openPage(authorizeUrl(test.url));
      const { status, text } = await agree(test.url, fields, approver);
      assert.equal(status, 403);
      assert.match(text, /previous secret/);
    });

    it('has a child key of theirs: what ends it, ends that', async () => {
      const { code, verifier } = await newCode();
      const { body } = await exchange(test.url, code, verifier);
      assert.equal(await accepts(body['access_token']), true);
      await test.keys.setEnabled(principal.apiKey.id, false, OPERATOR);
      assert.equal(await accepts(body['access_token']), false);
    });

    it('and was then refused gets no key', async () => {
      const { device_code: device } = await agreedDevice();
      const [request] = await test.keys.feature(Consent).list(1, OPERATOR);
      await test.keys.feature(Consent).deny(request!, OPERATOR);
      assert.equal((await pollDevice(test.url, device)).body['error'], 'access_denied');
    });
  });

  it('finds neither a key nor a code in the log, which has the requests and refusals', async () => {
    const { log, lines } = collectingLog();
    const logged = await startServer(test.keys, { clients: [APP], log });
    const device = await askDevice(logged.url);
    const { fields } = await openPage(`${logged.url}/device?user_code=${device.user_code}`);
    await agree(logged.url, fields, `${approver}x`);
    await agree(logged.url, fields, approver);
    const { body } = await pollDevice(logged.url, device.device_code);
    await pollDevice(logged.url, device.device_code);
    await logged.stop();
    const text = JSON.stringify(lines);
    for (const secret of [approver, body['access_token'] as string, device.device_code, device.user_code])
      assert.ok(!text.includes(secret));
    for (const message of ['key asked for', 'key refused', 'consent refused']) assert.ok(text.includes(message));
  });

  it('keeps no code that it could read in the store', async () => {
    const device = await agreedDevice();
    const { code } = await newCode();
    const rows = JSON.stringify([
      await test.keys.feature(Consent).list(10, OPERATOR),
      await test.keys.audit.read({ first: 50 }, OPERATOR),
    ]);
    for (const secret of [device.device_code, device.user_code, code, approver])
      assert.ok(!rows.includes(secret) && !rows.includes(secret.replace('-', '')));
  });
});

describe('an attack on the pages where people decide', () => {
  beforeEach(start);
  afterEach(() => test.stop());

  describe('with a redirect', () => {
    it('that differs by a character from the registered one redirects no one', async () => {
      const near = [
        'http://127.0.0.1:54321/done/',
        'http://127.0.0.1:54321/don',
        'http://127.0.0.1:54321/Done',
        'http://127.0.0.1:54321/done?x',
        'http://127.0.0.1:54321/done#x',
        'http://127.0.0.1:54321//done',
        'http://127.0.0.1:0543/done',
        'http://127.0.0.1:99999/done',
        'http://127.0.0.1:0/done',
        'http://127.0.0.2:54321/done',
        'http://localhost:54321/done',
        'http://[::1]:54321/done',
        'https://127.0.0.1:54321/done',
        'http://127.0.0.1:54321@evil.example/done',
        'http://evil.example/done',
        'https://app.example.org:8443/done',
        'https://app.example.org/done/../evil',
        'https://app.example.org.evil.example/done',
        'https://APP.example.org/done',
        'com.example.app://done',
        'com.example.app2:/done',
      ];
      for (const redirect of near) {
        // Avoids the limit of requests.
        test.time.now += 60_000;
        const { status, headers, text } = await openPage(authorizeUrl(test.url, { redirect_uri: redirect }));
        assert.deepEqual([status, headers.get('location')], [400, null], redirect);
        assert.match(text, /is not registered for/);
      }
      test.time.now += 60_000;
      for (const redirect of [CALLBACK, 'http://127.0.0.1/done', ...APP.redirects])
        assert.equal((await openPage(authorizeUrl(test.url, { redirect_uri: redirect }))).status, 200, redirect);
    });

    it('of an unknown client redirects no one', async () => {
      const { status, headers } = await openPage(authorizeUrl(test.url, { client_id: 'somebody' }));
      assert.deepEqual([status, headers.get('location')], [400, null]);
    });

    it('gets the state back unchanged on approval and refusal, and none if there was none', async () => {
      const state = ' &=#?%20"ü';
      for (const [decision, name] of [
        ['approve', 'code'],
        ['deny', 'error'],
      ] as const) {
        const { fields } = await openPage(authorizeUrl(test.url, { state }));
        const form: [string, string][] = [...fields, ['key', approver], ['decision', decision]];
        const { headers } = await postForm(`${test.url}/oauth/authorize`, form);
        const back = new URL(headers.get('location')!);
        assert.deepEqual([back.origin + back.pathname, back.searchParams.get('state')], [CALLBACK, state]);
        assert.ok(back.searchParams.has(name));
      }
      const { fields } = await openPage(authorizeUrl(test.url, { state: '' }));
      const { headers } = await agree(test.url, fields, approver);
      assert.equal(new URL(headers.get('location')!).searchParams.has('state'), false);
    });
  });

  describe('with a page', () => {
    it('cannot change what was shown: the form names the request, and nothing beyond it is granted', async () => {
      const { fields } = await openPage(authorizeUrl(test.url, { scope: 'ONLINE:READ_ANY' }));
      assert.deepEqual(
        fields.filter(([name]) => name === 'scope'),
        [['scope', 'ONLINE:READ_ANY']],
      );
      const more: [string, string][] = [
        ...fields,
        ['scope', 'DOCKER:READ_ANY'],
        ['redirect_uri', 'https://evil.example/'],
        ['client_id', 'svc-api'],
      ];
      const refused = await agree(test.url, more, approver);
      assert.equal(refused.status, 400);
      assert.match(refused.text, /did not request DOCKER:READ_ANY/);
      const withRole = await agree(test.url, [...fields, ['scope', 'role:VIEWER']], approver);
      assert.match(withRole.text, /did not request the role VIEWER/);
      const { status, headers } = await agree(test.url, fields, approver);
      assert.deepEqual([status, new URL(headers.get('location')!).origin], [303, new URL(CALLBACK).origin]);
    });

    it('cannot be decided twice in different ways, or by different people', async () => {
      const scope = 'DOCKER:READ_ANY ONLINE:READ_ANY';
      const { fields } = await openPage(authorizeUrl(test.url, { scope }));
      const less = fields.filter(([, value]) => value !== 'ONLINE:READ_ANY');
      assert.equal((await agree(test.url, less, approver)).status, 303);
      const { secret: other } = await createPrincipal(test.keys, { name: 'Other', roles: ['ADMIN'] });
      const later = less.map(([name, value]): [string, string] => [name, name === 'expires_in' ? '1h' : value]);
      for (const [form, key] of [
        [fields, approver],
        [later, approver],
        [less, other],
      ] as const) {
        const again = await agree(test.url, form, key);
        assert.deepEqual([again.status, again.headers.get('location')], [409, null]);
        assert.match(again.text, /was already approved/);
      }
    });

    it('is decided once by a double click: of its two codes, the last works, and no longer than the first', async () => {
      const { verifier, challenge } = newPkce();
      const codeIn = (headers: Headers) => new URL(headers.get('location')!).searchParams.get('code')!;
      const { fields } = await openPage(authorizeUrl(test.url, { code_challenge: challenge }));
      const both = await Promise.all([agree(test.url, fields, approver), agree(test.url, fields, approver)]);
      assert.deepEqual([both[0].status, both[1].status], [303, 303]);
      test.time.now += 30_000;
      const { headers } = await agree(test.url, fields, approver);
      const last = codeIn(headers);
      for (const reply of both)
        assert.equal((await exchange(test.url, codeIn(reply.headers), verifier)).body['error'], 'invalid_grant');
      const { body } = await exchange(test.url, last, verifier);
      assert.equal(await accepts(body['access_token']), true);
      const used = await agree(test.url, fields, approver);
      assert.deepEqual([used.status, used.headers.get('location')], [409, null], 'its key was fetched');
      assert.equal(await accepts(body['access_token']), true, 'which ends nothing');
      assert.equal((await test.keys.list({ search: 'Grafana' }, OPERATOR)).keys.length, 1);

      const { fields: slow } = await openPage(authorizeUrl(test.url, { code_challenge: challenge }));
      await agree(test.url, slow, approver);
      test.time.now += 59_999;
      const late = codeIn((await agree(test.url, slow, approver)).headers);
      test.time.now += 1;
      assert.equal((await exchange(test.url, late, verifier)).body['error'], 'invalid_grant');
      assert.equal((await agree(test.url, slow, approver)).status, 404);
    });

    it('is decided twice only by those who may still approve', async () => {
      const { fields } = await openPage(authorizeUrl(test.url));
      await agree(test.url, fields, approver);
      await test.keys.update(principal.apiKey.id, { permissions: [] }, OPERATOR);
      const again = await agree(test.url, fields, approver);
      assert.deepEqual([again.status, again.headers.get('location')], [403, null]);
    });

    it('can be refused twice, also after an approval', async () => {
      const { verifier, challenge } = newPkce();
      const { fields } = await openPage(authorizeUrl(test.url, { code_challenge: challenge }));
      const { headers } = await agree(test.url, fields, approver);
      const code = new URL(headers.get('location')!).searchParams.get('code')!;
      const refuse = () => postForm(`${test.url}/oauth/authorize`, [...fields, ['decision', 'deny']]);
      for (const { headers: back } of [await refuse(), await refuse()])
        assert.equal(new URL(back.get('location')!).searchParams.get('error'), 'access_denied');
      assert.equal((await exchange(test.url, code, verifier)).body['error'], 'access_denied');
      assert.equal((await agree(test.url, fields, approver)).status, 409);
    });

    it('is refused no more once the application has its key', async () => {
      const { device_code: device, user_code: userCode } = await agreedDevice();
      const { body } = await pollDevice(test.url, device);
      const { status, text } = await postForm(`${test.url}/device`, { user_code: userCode, decision: 'deny' });
      assert.deepEqual([status, text.includes('was already approved')], [409, true]);
      assert.equal(await accepts(body['access_token']), true);
    });

    it('cannot show it within another one, and its page loads and runs nothing', async () => {
      const device = await askDevice(test.url);
      for (const path of [
        authorizeUrl(test.url).slice(test.url.length),
        `/device?user_code=${device.user_code}`,
        '/device',
        '/oauth/authorize',
      ]) {
        const { headers, text } = await openPage(test.url + path);
        assert.equal(headers.get('x-frame-options'), 'DENY', path);
        const policy = headers.get('content-security-policy')!;
        assert.match(
          policy,
          /^default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'[^;]*; frame-ancestors 'none'$/,
        );
        assert.doesNotMatch(text, /<script|<style| style=|src=|url\(|@import/);
        const loaded = Array.from(
          text.matchAll(/<link [^>]*href="([^"]*)"/g),
          ([, href]) => new URL(href!, test.url + path),
        );
        assert.equal(loaded.length, 2);
        for (const { origin, href } of loaded) {
          assert.equal(origin, test.url);
          assert.equal((await fetch(href)).status, 200);
        }
        const names = ['cache-control', 'referrer-policy', 'x-content-type-options'];
        assert.deepEqual(
          names.map((name) => headers.get(name)),
          ['no-store', 'same-origin', 'nosniff'],
        );
      }
    });

    it('of another origin, cannot send the form', async () => {
      const { fields } = await openPage(authorizeUrl(test.url));
      const foreign: Record<string, string>[] = [
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site', origin: test.url },
        { 'sec-fetch-site': 'none' },
        { origin: 'https://evil.example' },
        { origin: test.url.replace('http:', 'https:') },
        { origin: 'null' },
      ];
      for (const headers of foreign) assert.equal((await agree(test.url, fields, approver, headers)).status, 403);
      const own = { 'sec-fetch-site': 'same-origin', origin: 'null' };
      assert.equal((await agree(test.url, fields, approver, own)).status, 303);
    });

    it("shows a name's markup as text", async () => {
      const { text } = await openPage(`${test.url}/device?user_code=${encodeURIComponent('"><b>x</b>')}`);
      assert.doesNotMatch(text, /<b>/);
      assert.match(text, /&lt;b&gt;/);
    });

    it('cannot make it take the key from an address', async () => {
      const { fields } = await openPage(authorizeUrl(test.url));
      const form: [string, string][] = [...fields, ['decision', 'approve']];
      const { status, text } = await postForm(`${test.url}/oauth/authorize?key=${approver}`, form, {
        authorization: `Bearer ${approver}`,
      });
      assert.equal(status, 400);
      assert.match(text, /Enter your own API key/);
    });
  });

  it('by asking and refusing without a key, adds ten entries to the audit log in ten minutes', async () => {
    const wanted = { client: APP, roles: [], permissions: ['DOCKER:READ_ANY' as const] };
    const newest = async () => (await test.keys.audit.read({ first: 1 }, OPERATOR))[0]!.number;
    const before = await newest();
    for (let count = 0; count < 20; count += 1) {
      const { request } = await test.keys.feature(Consent).ask(wanted);
      await test.keys.feature(Consent).deny(request, null);
    }
    assert.equal((await newest()) - before, 10);
  });

  describe('who guesses', () => {
    it('codes has ten tries a minute from one address, and the right one is no exception', async () => {
      const { user_code: right } = await askDevice(test.url);
      const statuses = [];
      for (let count = 0; count < 12; count += 1)
        statuses.push((await openPage(`${test.url}/device?user_code=BBBB-BBBB`)).status);
      assert.deepEqual(statuses, [...Array<number>(10).fill(404), 429, 429]);
      const refused = await openPage(`${test.url}/device?user_code=${right}`);
      assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '6']);
      assert.equal((await postForm(`${test.url}/device`, { user_code: right, decision: 'deny' })).status, 429);
      test.time.now += 6000;
      assert.equal((await openPage(`${test.url}/device?user_code=${right}`)).status, 200);
    });

    it('keys on a page, has ten tries a minute, before anything of it is read', async () => {
      const { fields } = await openPage(authorizeUrl(test.url));
      const statuses = [];
      for (let count = 0; count < 11; count += 1)
        statuses.push((await agree(test.url, fields, `svc_${'A'.repeat(12)}_${'A'.repeat(49)}`)).status);
      assert.deepEqual(statuses, [...Array<number>(10).fill(403), 429]);
      const { status, headers } = await agree(test.url, fields, 'x'.repeat(20_000));
      assert.deepEqual([status, headers.get('retry-after')], [429, '6'], 'longer than is read');
      test.time.now += 6000;
      assert.equal((await agree(test.url, fields, approver)).status, 303);
    });

    it('keys on pages of several addresses, is held by the limit of failed credentials, and a valid one is accepted', async () => {
      const { fields } = await openPage(authorizeUrl(test.url));
      const statuses = [];
      const unknown = `svc_${'A'.repeat(12)}_${'A'.repeat(49)}`;
      for (let minute = 0; minute < 3; minute += 1) {
        for (let count = 0; count < 8; count += 1) statuses.push((await agree(test.url, fields, unknown)).status);
        test.time.now += 60_000;
      }
      assert.deepEqual([statuses.indexOf(429), statuses.at(-1)], [20, 429]);
      assert.equal((await agree(test.url, fields, approver)).status, 303);
    });

    it('codes for a key gets ten refusals a minute at one address, and the right code still works', async () => {
      const device = await askDevice(test.url);
      const doors = [
        () => pollDevice(test.url, 'x'.repeat(43)),
        () => exchange(test.url, 'x'.repeat(43), 'y'.repeat(43)),
        () => postJson(`${test.url}/oauth/token`, { client_id: 'nobody' }),
        () => postJson(`${test.url}/oauth/token`, { client_id: APP.id, scope: 'A '.repeat(10_000) }),
      ];
      for (const knock of doors) {
        const statuses = [];
        for (let count = 0; count < 11; count += 1) statuses.push((await knock()).status);
        assert.equal(statuses.indexOf(429), 10, statuses.join());
        const { status, headers, body } = await postJson(`${test.url}/oauth/token`, { x: 'x'.repeat(20_000) });
        assert.deepEqual([status, headers.get('retry-after')], [429, '6'], 'longer than is read');
        assert.equal(body['error'], 'temporarily_unavailable');
        assert.equal((await pollDevice(test.url, device.device_code)).body['error'], 'authorization_pending');
        test.time.now += 60_000;
      }
      const { code, verifier } = await newCode();
      await test.keys
        .feature(Consent)
        .approve(await test.keys.feature(Consent).show({ userCode: device.user_code }), {}, principal);
      for (let count = 0; count < 11; count += 1) await pollDevice(test.url, 'x'.repeat(43));
      assert.equal((await exchange(test.url, code, verifier)).status, 200);
      assert.equal((await pollDevice(test.url, device.device_code)).status, 200);
    });

    it('nothing, waits for a person, and polls at the given interval never fails, whatever others do there', async () => {
      const { device_code: code, user_code: userCode } = await askDevice(test.url);
      for (let count = 0; count < 119; count += 1) {
        for (let other = 0; other < 3; other += 1) await pollDevice(test.url, 'x'.repeat(43));
        const { body, status } = await pollDevice(test.url, code);
        assert.deepEqual([status, body['error']], [400, 'authorization_pending'], `${count}`);
        test.time.now += 5000;
      }
      await test.keys.feature(Consent).deny(await test.keys.feature(Consent).show({ userCode }), OPERATOR);
      for (let other = 0; other < 11; other += 1) await pollDevice(test.url, 'x'.repeat(43));
      assert.equal((await pollDevice(test.url, code)).body['error'], 'access_denied');
      test.time.now += 5000;
      assert.equal((await pollDevice(test.url, code)).body['error'], 'expired_token');
    });

    it('nothing, and polls too often, has to slow down, and the store is not asked', async () => {
      const { device_code: code } = await askDevice(test.url);
      const poll = async (after: number) => {
        test.time.now += after;
        return (await pollDevice(test.url, code)).body['error'];
      };
      const [pending, slower] = ['authorization_pending', 'slow_down'];
      assert.deepEqual([await poll(0), await poll(5000), await poll(4000)], [pending, pending, slower]);
      assert.deepEqual([await poll(1000), await poll(4500), await poll(4499)], [pending, pending, slower]);
      const { repository } = test.store;
      const port = repository.port.bind(repository);
      repository.port = () => assert.fail('the store was asked');
      for (let count = 0; count < 100; count += 1) assert.equal(await poll(0), slower);
      repository.port = port;
    });

    it('yet, and does not slow down, has its key within ten seconds of the consent', async () => {
      for (const every of [100, 1000, 2000, 4000, 4400, 4600, 4900, 5000]) {
        const { device_code: code, user_code: userCode } = await askDevice(test.url);
        const poll = async () => (await pollDevice(test.url, code)).body['access_token'];
        for (let asked = 0; asked < 20_000; asked += every) {
          assert.equal(await poll(), undefined);
          test.time.now += every;
        }
        const { fields } = await openPage(`${test.url}/device?user_code=${userCode}`);
        await agree(test.url, fields, approver);
        const agreedAt = test.time.now;
        while ((await poll()) === undefined) test.time.now += every;
        assert.ok(test.time.now - agreedAt < 10_000, `${every}`);
        test.time.now += 60_000;
      }
    });

    it('request codes has ten tries a minute, before anything is read', async () => {
      const junk = 'A '.repeat(4000);
      const doors: [string, () => Promise<{ status: number; headers: Headers; text: string }>][] = [
        ['device', () => postForm(`${test.url}/oauth/device_authorization`, { client_id: APP.id, scope: junk })],
        ['form', () => postForm(`${test.url}/oauth/device_authorization`, { client_id: 'nobody' })],
        ['page', () => openPage(authorizeUrl(test.url, { scope: junk.slice(0, 4000) }))],
        ['client', () => openPage(authorizeUrl(test.url, { client_id: 'nobody' }))],
      ];
      for (const [door, knock] of doors) {
        const statuses = [];
        for (let count = 0; count < 11; count += 1) statuses.push((await knock()).status);
        assert.ok(!statuses.slice(0, 10).includes(429), `${door}: ${statuses.join()}`);
        const { status, headers } = await knock();
        assert.deepEqual([statuses[10], status, headers.get('retry-after')], [429, 429, '6'], door);
        test.time.now += 60_000;
      }
    });

    it('makes ten requests a minute from one address, and then learns when the next one is possible', async () => {
      const asked = [];
      for (let count = 0; count < 11; count += 1) asked.push(await askFrom('198.51.100.1'));
      assert.deepEqual(
        asked.map(({ status }) => status),
        [...Array<number>(10).fill(200), 429],
      );
      assert.equal(asked[10]!.headers.get('retry-after'), '6');
    });

    it('makes thirty a minute from all addresses of a network, and others go on', async () => {
      for (const [addressOf, same, other] of [
        [(index: number) => `198.51.100.${index}`, '::ffff:198.51.100.99', '198.51.101.1'],
        [(index: number) => `2001:db8:7:${index.toString(16)}::1`, '2001:db8:7::7', '2001:db8:8::1'],
      ] as const) {
        const statuses = [];
        for (let index = 1; index <= 31; index += 1) statuses.push((await askFrom(addressOf(index))).status);
        assert.deepEqual(statuses, [...Array<number>(30).fill(200), 429]);
        assert.equal((await askFrom(same)).status, 429, 'IPv4 within IPv6 is IPv4');
        assert.equal((await askFrom(other)).status, 200);
      }
    });

    it('tries thirty codes a minute from all addresses of a network', async () => {
      const statuses = [];
      for (let index = 0; index < 31; index += 1) {
        const headers = { 'x-forwarded-for': `2001:db8:7:${index.toString(16)}::1` };
        statuses.push((await fetch(`${test.url}/device?user_code=BCDF-GHJK`, { headers })).status);
      }
      assert.deepEqual(statuses, [...Array<number>(30).fill(404), 429]);
    });

    it('with one address, takes nothing from the others of its network', async () => {
      for (let count = 0; count < 50; count += 1) await askFrom('198.51.100.1');
      for (let index = 2; index <= 3; index += 1) assert.equal((await askFrom(`198.51.100.${index}`)).status, 200);
    });

    it('for typed codes is counted before the code is read', async () => {
      const typed = { user_code: 'x'.repeat(10_000), decision: 'deny' };
      const statuses = [];
      for (let count = 0; count < 11; count += 1) statuses.push((await postForm(`${test.url}/device`, typed)).status);
      assert.deepEqual(statuses, [...Array<number>(10).fill(404), 429]);
    });
  });
});

/** Requests a key as an application at an address. */
function askFrom(address: string) {
  const form = { client_id: APP.id, scope: 'DOCKER:READ_ANY' };
  return postJson(`${test.url}/oauth/device_authorization`, form, { 'x-forwarded-for': address });
}

describeOnEach('the room for requests of applications', () => {
  beforeEach(start);
  afterEach(() => test.stop());

  /** Inserts requests, each from another address. */
  async function fill(addresses: readonly string[], status: 'PENDING' | 'DENIED' | 'APPROVED' = 'PENDING') {
    const { request } = await test.keys.feature(Consent).ask({ client: APP, roles: ['GUEST'], permissions: [] });
    await test.store.repository.write(async (writer) => {
      const consents = writer.port(CONSENTS);
      for (const address of addresses) {
        const id = `${status} ${address}`;
        const { source } = sourceOf(address);
        await consents.insert({ ...request, id, handleDigest: id, codeDigest: id, address, source, status });
      }
    });
  }
  const held = async () => (await test.keys.feature(Consent).list(2000, OPERATOR)).map(({ address }) => address);
  const isThere = async ({ body }: Awaited<ReturnType<typeof askFrom>>) => {
    test.time.now += 20_000;
    return (await pollDevice(test.url, body['device_code'] as string)).body['error'] === 'authorization_pending';
  };

  it('is a thousand in ten minutes; the source with the most gives way', async () => {
    const networks = Array.from({ length: 998 }, (_, index) => `2001:db8:${(index % 500).toString(16)}:${index}::1`);
    await fill(networks);
    const honest = [await askFrom('203.0.113.7'), await askFrom('2001:dead::1'), await askFrom('203.0.113.8')];
    assert.deepEqual(
      honest.map(({ status }) => status),
      [200, 200, 200],
    );
    for (let index = 0; index < 40; index += 1) await askFrom(`2001:db8:f${index.toString(16).padStart(3, '0')}::1`);
    assert.equal((await held()).length, 1000);
    for (const asked of honest) assert.equal(await isThere(asked), true);
    test.time.now += 600_000;
    assert.equal((await askFrom('2001:db8:1::1')).status, 200);
    assert.equal((await held()).length, 1);
  });

  it("is neither freed by refusing one's own requests, nor taken from approved ones", async () => {
    const addresses = Array.from({ length: 999 }, (_, index) => `2001:db8:${index.toString(16)}::1`);
    await fill(addresses.slice(0, 99), 'DENIED');
    await fill(addresses.slice(99, 999), 'APPROVED');
    assert.equal((await askFrom('203.0.113.7')).status, 200);
    for (let index = 8; index < 10; index += 1) assert.equal((await askFrom(`203.0.${index}.1`)).status, 200);
    const open = await held();
    assert.equal(open.filter((address) => address?.startsWith('2001')).length, 900);
    assert.deepEqual(
      new Set(open.filter((address) => address?.startsWith('203'))),
      new Set(['203.0.113.7', '203.0.8.1', '203.0.9.1']),
    );
  });

  it('is refused to a source that has as much of it as any other', async () => {
    await fill(Array.from({ length: 999 }, (_, index) => `${1 + (index % 200)}.${Math.floor(index / 200)}.0.1`));
    const { status, headers, body } = await askFrom('1.0.0.9');
    assert.deepEqual([status, headers.get('retry-after'), body['error']], [429, '60', 'temporarily_unavailable']);
    assert.equal((await askFrom('203.0.113.7')).status, 429, 'all have one each');
  });

  it('is a hundred for a network; the address with the most gives way', async () => {
    const honest = await askFrom('198.51.100.200');
    for (let minute = 0; minute < 5; minute += 1) {
      for (let count = 0; count < 27; count += 1) await askFrom(`198.51.100.${1 + (count % 3)}`);
      test.time.now += 60_000;
    }
    const open = await held();
    assert.deepEqual([open.length, open.filter((address) => address === '198.51.100.200').length], [100, 1]);
    assert.equal(await isThere(honest), true);
  });
});
