import assert from 'node:assert/strict';
import { OPERATOR, type Principal } from '../../src/keys/authorization/principal.ts';
import {
  APP,
  askDevice,
  pollDevice,
  postForm,
  postJson,
  startConsentService,
} from '../features/consent/support/consent.ts';
import { describeOnEach } from '../support/dialects.ts';
import { authenticate, createPrincipal } from '../support/keys.ts';
import { collectingLog } from '../support/log.ts';
import { startServer, type TestService } from '../support/server.ts';
import { Consent } from '../../src/features/consent/consent.ts';

const OTHER = { id: 'wall-display', name: 'Wall display', redirects: [] };

describeOnEach('clients that end keys by /oauth/revoke', () => {
  let test: TestService;
  let approver: Principal;
  beforeEach(async () => {
    test = await startConsentService({ app: { clients: [APP, OTHER] } });
    ({ principal: approver } = await createPrincipal(test.keys, { name: 'Anna', roles: ['ADMIN'] }));
  });
  afterEach(() => test.stop());
  const accepts = async (key: string) => 'principal' in (await authenticate(test.keys, key));
  const revoke = (token: string, more: Record<string, string> = {}) =>
    postJson(`${test.url}/oauth/revoke`, { client_id: APP.id, token, ...more });

  /** A key that an application received, authenticated. */
  async function given(scope = 'DOCKER:READ_ANY', parameters: Record<string, string> = {}) {
    const { device_code: code, user_code: userCode } = await askDevice(test.url, { scope, ...parameters });
    const consent = test.keys.feature(Consent);
    await consent.approve(await consent.show({ userCode }), {}, approver);
    const secret = (await pollDevice(test.url, code)).body['access_token'] as string;
    const authenticated = await authenticate(test.keys, secret);
    assert.ok('principal' in authenticated);
    return { secret, principal: authenticated.principal, id: authenticated.principal.apiKey.id };
  }
  const withChild = async () => {
    const parent = await given('role:GUEST API_KEY:CREATE_OWN');
    const child = await test.keys.create({ name: 'Child', roles: ['GUEST'] }, parent.principal);
    return { ...parent, child: child.key };
  };

  it('end their own, with all that it created, and the audit log says who did it, and from where', async () => {
    const { secret, child, id } = await withChild();
    const { status, body, headers } = await revoke(`${secret}\n`, { token_type_hint: 'refresh_token' });
    assert.deepEqual([status, body, headers.get('cache-control')], [200, {}, 'no-store']);
    assert.deepEqual([await accepts(secret), await accepts(child)], [false, false]);
    const entries = await test.keys.audit.read({ first: 3 }, OPERATOR);
    assert.deepEqual(
      entries.toReversed().map(({ action, actor, apiKey: key }) => [action, actor.kind, actor.id, key?.name]),
      [
        ['CONSENT_REVOKE', 'KEY', id, entries[0]!.actor.name],
        ['DELETE', 'KEY', id, entries[0]!.actor.name],
        ['DELETE', 'KEY', id, 'Child'],
      ],
    );
    assert.deepEqual([entries[2]!.after, entries[2]!.address], [{ client: APP.id }, '127.0.0.1']);
  });

  it('end their own also after it has replaced itself, twice, and so does its code that comes again', async () => {
    const scope = 'role:GUEST API_KEY:CREATE_OWN API_KEY:DELETE_OWN';
    for (const end of ['revocation', 'replay'] as const) {
      const { device_code: code, user_code: userCode } = await askDevice(test.url, { scope });
      const consent = test.keys.feature(Consent);
      await consent.approve(await consent.show({ userCode }), {}, approver);
      let secret = (await pollDevice(test.url, code)).body['access_token'] as string;
      for (let time = 0; time < 2; time += 1) {
        const authenticated = await authenticate(test.keys, secret);
        assert.ok('principal' in authenticated);
        const { name } = authenticated.principal.apiKey;
        const permissions = ['API_KEY:CREATE_OWN' as const, 'API_KEY:DELETE_OWN' as const];
        ({ key: secret } = await test.keys.create({ name, permissions, overwrite: true }, authenticated.principal));
      }
      assert.equal(await accepts(secret), true);
      if (end === 'replay') assert.equal((await pollDevice(test.url, code)).body['error'], 'invalid_grant');
      else assert.deepEqual((await revoke(secret)).body, {});
      assert.equal(await accepts(secret), false, end);
    }
  });

  it('end their own after a replacement was reverted, as its secret could not be written out', async () => {
    const child = await given('role:GUEST API_KEY:CREATE_OWN API_KEY:DELETE_OWN');
    const { name } = child.principal.apiKey;
    const deliver = () => Promise.reject(new Error('stdout is closed'));
    for (const actor of [OPERATOR, child.principal] as const) {
      const create = test.keys.create({ name, roles: ['GUEST'], overwrite: true }, actor, { deliver });
      await assert.rejects(create, /stdout is closed/);
    }
    assert.deepEqual((await revoke(child.secret)).body, {});
    assert.equal(await accepts(child.secret), false);
  });

  it('can leave a key that has created others as it is', async () => {
    const { secret, child } = await withChild();
    const { status, body } = await revoke(secret, { created_keys: 'refuse' });
    assert.deepEqual([status, body['error']], [400, 'has_created_keys']);
    assert.equal(body['error_description'], 'This key has created 1 API key, which would be deleted with it.');
    assert.deepEqual([await accepts(secret), await accepts(child)], [true, true]);
    const { secret: alone } = await given();
    assert.equal((await revoke(alone, { created_keys: 'refuse' })).status, 200);
    assert.equal(await accepts(alone), false);
  });

  it('end none that belong to no application: those of the operator, of other keys, and of that key itself', async () => {
    const { key: made } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const { key: childOfKey } = await test.keys.create({ name: 'By Anna', roles: ['GUEST'] }, approver);
    const { child } = await withChild();
    for (const secret of [made, childOfKey, child]) {
      const { status, body } = await revoke(secret);
      assert.deepEqual([status, body['error']], [400, 'unsupported_token_type']);
      assert.equal(await accepts(secret), true);
    }
  });

  it('end none of another application', async () => {
    const { secret } = await given();
    for (const client of [OTHER.id, 'svc-api']) {
      const { status, body } = await revoke(secret, { client_id: client });
      assert.deepEqual([status, body['error']], [400, 'invalid_grant']);
    }
    assert.equal(await accepts(secret), true);
  });

  it('learn nothing of a key that is not valid: all such are answered as one that was ended', async () => {
    const { secret: ended } = await given();
    const first = await revoke(ended);
    const { secret: disabled, id } = await given();
    await test.keys.setEnabled(id, false, OPERATOR);
    const { secret: expired } = await given('DOCKER:READ_ANY', { key_expires_in: '1m' });
    const { key: own } = await test.keys.create({ name: 'Off', roles: ['GUEST'] }, OPERATOR);
    await test.keys.setEnabled((await test.keys.findByName('Off', OPERATOR))!.id, false, OPERATOR);
    test.time.now += 60_000;
    const unknown = `svc_${'A'.repeat(12)}_${'A'.repeat(49)}`;
    for (const token of [ended, disabled, expired, own, unknown, 'nonsense', ' ', '\u0000', 'x'.repeat(9000)]) {
      const { status, body, headers } = await revoke(token);
      assert.deepEqual([status, body], [first.status, first.body], token.slice(0, 20));
      assert.deepEqual([...headers.keys()], [...first.headers.keys()]);
    }
    assert.ok(await test.keys.findById(id, OPERATOR), 'what is disabled stays so');
  });

  it('get ten refusals a minute at one address for keys that cannot be ended, and can still end their own', async () => {
    const { secret } = await given();
    const family = await withChild();
    const { key: made } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const unknown = `svc_${'A'.repeat(12)}_${'A'.repeat(49)}`;
    const statuses = [];
    for (let count = 0; count < 12; count += 1) statuses.push((await revoke(count % 2 ? made : unknown)).status);
    assert.deepEqual(statuses, [...Array.from({ length: 10 }, (_, index) => (index % 2 ? 400 : 200)), 429, 429]);
    for (const token of [unknown, made, 'nonsense', 'x'.repeat(20_000)]) {
      const { status, body, headers } = await revoke(token);
      assert.deepEqual([status, body['error']], [429, 'temporarily_unavailable'], token.slice(0, 20));
      assert.equal(headers.get('retry-after'), '6');
    }
    const spared = await revoke(family.secret, { created_keys: 'refuse' });
    assert.deepEqual([spared.status, spared.body['error']], [400, 'has_created_keys']);
    for (const token of [secret, family.secret]) {
      assert.equal((await revoke(token)).status, 200);
      assert.equal(await accepts(token), false);
    }
    assert.equal((await revoke(secret)).status, 429, 'it is none any more');
    test.time.now += 6000;
    assert.equal((await revoke('nonsense')).status, 200);
  });

  it('end many in bulk from an address of a network that has failed', async () => {
    const found = [];
    for (let count = 0; count < 15; count += 1) {
      found.push((await given()).secret);
      test.time.now += 6000;
    }
    const from = (address: string, token: string) =>
      postJson(`${test.url}/oauth/revoke`, { client_id: APP.id, token }, { 'x-forwarded-for': address });
    for (let index = 0; index < 40; index += 1) await from(`203.0.113.${index}`, 'nonsense');
    assert.equal((await from('203.0.113.200', 'nonsense')).status, 429);
    for (const secret of found) assert.equal((await from('203.0.113.200', secret)).status, 200);
    for (const secret of found) assert.equal(await accepts(secret), false);
  });

  it('add nothing to the audit log, and start no transaction, with what cannot be ended', async () => {
    const { secret } = await given();
    const { key: made } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const [before] = await test.keys.audit.read({ first: 1 }, OPERATOR);
    const { repository } = test.store;
    const write = repository.write.bind(repository);
    repository.write = () => assert.fail('a transaction');
    for (const token of ['nonsense', made]) await revoke(token);
    await revoke(secret, { client_id: OTHER.id });
    repository.write = write;
    assert.deepEqual((await test.keys.audit.read({ first: 1 }, OPERATOR))[0], before);
  });

  it('end one once, by two requests at once', async () => {
    const { secret } = await given();
    const both = await Promise.all([revoke(secret), revoke(secret)]);
    assert.deepEqual([both[0].status, both[1].status], [200, 200]);
    const actions = (await test.keys.audit.read({ first: 10 }, OPERATOR)).map(({ action }) => action);
    assert.equal(actions.filter((action) => action === 'CONSENT_REVOKE').length, 1);
  });

  it('with a previous secret end only that', async () => {
    const { secret: previous, id, child } = await withChild();
    const { key: secret } = await test.keys.rotate(id, { grace: '1h' }, OPERATOR);
    assert.equal((await revoke(previous, { created_keys: 'refuse' })).status, 200);
    assert.deepEqual([await accepts(previous), await accepts(secret), await accepts(child)], [false, true, true]);
    const actions = (await test.keys.audit.read({ first: 2 }, OPERATOR)).map(({ action }) => action);
    assert.deepEqual(actions, ['ROTATE_FINISH', 'CONSENT_REVOKE']);
    assert.equal((await revoke(secret)).status, 200);
    assert.equal(await accepts(secret), false);
  });

  it('can do so long after the request was forgotten, even if the audit log was pruned', async () => {
    const { secret } = await given();
    test.time.now += 90 * 86_400_000;
    await askDevice(test.url);
    await test.keys.audit.prune('1d');
    assert.equal((await revoke(secret)).status, 200);
    assert.equal(await accepts(secret), false);
  });

  it('cannot send a key in an address or a header, or it is ignored', async () => {
    const { secret } = await given();
    const url = `${test.url}/oauth/revoke?token=${secret}&client_id=${APP.id}`;
    assert.match((await postForm(url, {})).text, /client_id is missing/);
    assert.match((await postForm(url, { client_id: APP.id })).text, /token is missing/);
    const bearer = await postForm(url, { client_id: APP.id }, { authorization: `Bearer ${secret}` });
    assert.equal(bearer.status, 401);
    assert.equal((await fetch(url)).status, 405);
    assert.equal(await accepts(secret), true);
  });

  it('leave no key in the log', async () => {
    const { log, lines } = collectingLog();
    const logged = await startServer(test.keys, { clients: [APP], log });
    const { secret } = await given();
    const { key: made } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    for (const token of [secret, secret, made])
      await postForm(`${logged.url}/oauth/revoke`, { client_id: APP.id, token });
    await logged.stop();
    const text = JSON.stringify(lines);
    for (const token of [secret, made]) assert.ok(!text.includes(token));
    assert.match(text, /revocation refused/);
  });
});
