import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { collectingLog, withoutRequestId } from '../support/log.ts';
import { startTestService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

describeOnEach('the networks that a key may be used from', () => {
  let test: TestService;
  const { log, lines } = collectingLog();
  before(async () => {
    test = await startTestService({ log });
  });
  after(() => test.stop());
  let count = 0;
  const create = async (allowFrom: string[] | null) => {
    count += 1;
    return test.keys.create({ name: `Key ${count}`, roles: ['GUEST'], allowFrom }, OPERATOR);
  };
  /** Sends a client's request through a local proxy. */
  const send = async (secret: string, headers: Record<string, string> = {}) => {
    const reply = await fetch(`${test.url}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
      body: '{"query":"{ online }"}',
    });
    return { status: reply.status, text: await reply.text() };
  };
  const statusFrom = async (secret: string, address: string) =>
    (await send(secret, { 'X-Forwarded-For': address })).status;

  it('accept it from there, and nowhere else', async () => {
    const { key: secret } = await create(['10.0.0.0/8', '2001:db8::/32', '192.0.2.7']);
    for (const address of ['10.0.0.1', '10.255.255.255', '2001:db8:ffff::1', '192.0.2.7', '::ffff:10.1.2.3'])
      assert.equal(await statusFrom(secret, address), 200, address);
    for (const address of ['11.0.0.1', '192.0.2.8', '2001:db9::1', '::1', '127.0.0.1'])
      assert.equal(await statusFrom(secret, address), 403, address);
    assert.equal((await send(secret)).status, 403, 'the proxy itself');
  });

  it('are not named where it is refused, which is logged with the address', async () => {
    const { key: secret, apiKey: key } = await create(['10.0.0.0/8']);
    const { status, text } = await send(secret, { 'X-Forwarded-For': '198.51.100.1' });
    assert.deepEqual(
      [status, JSON.parse(text)],
      [403, { errors: [{ message: 'This key cannot be used from this address.', extensions: { code: 'FORBIDDEN' } }] }],
    );
    const fields = { reason: 'address', prefix: `svc_${key.publicId}_…`, address: '198.51.100.1' };
    const { level, message, fields: logged } = lines.at(-1)!;
    assert.deepEqual([level, message, withoutRequestId(logged)], ['info', 'request forbidden', fields]);
    await test.keys.finishActivity();
    const [entry] = await test.keys.audit.read({ actor: key.id }, OPERATOR);
    assert.deepEqual(
      [entry?.action, entry?.address, entry?.after],
      ['REFUSE', '198.51.100.1', { reason: 'address', count: 1 }],
    );
    assert.equal((await test.keys.useOf([key.id])).size, 0, 'it was not used');
  });

  it('do not include a network of the other family, however large', async () => {
    const everyV6 = await create(['::/0']);
    assert.equal(await statusFrom(everyV6.key, '10.0.0.1'), 403);
    assert.equal(await statusFrom(everyV6.key, '2001:db8::1'), 200);
    const everyV4 = await create(['0.0.0.0/0']);
    assert.equal(await statusFrom(everyV4.key, '2001:db8::1'), 403);
    assert.equal(await statusFrom(everyV4.key, '10.0.0.1'), 200);
  });

  it('apply to the address that the client cannot forge', async () => {
    const { key: secret } = await create(['10.0.0.0/8']);
    const forged: Record<string, string>[] = [
      { 'X-Forwarded-For': '10.0.0.1, 198.51.100.1' },
      { 'X-Forwarded-For': '10.0.0.1', Forwarded: 'for=198.51.100.1' },
      { 'X-Forwarded-For': 'unknown' },
      { 'X-Real-IP': '10.0.0.1' },
      { 'X-Forwarded-For': '10.0.0.1.' },
    ];
    for (const headers of forged) assert.equal((await send(secret, headers)).status, 403, JSON.stringify(headers));
  });

  it('of a key hold its child keys, too', async () => {
    const { principal, secret } = await createPrincipal(test.keys, {
      name: 'Parent',
      roles: ['ADMIN'],
      allowFrom: ['10.0.0.0/8'],
    });
    const allowFrom = ['10.1.0.0/16', '192.0.2.0/24'];
    const child = await createPrincipal(test.keys, { name: 'Child', roles: ['GUEST'], allowFrom }, principal);
    assert.equal(await statusFrom(child.secret, '10.1.2.3'), 200);
    for (const address of ['10.2.0.1', '192.0.2.1'])
      assert.equal(await statusFrom(child.secret, address), 403, address);
    assert.equal(await statusFrom(secret, '10.2.0.1'), 200);
  });

  it('that are changed hold from the next request on', async () => {
    const { key: secret, apiKey: key } = await create(null);
    assert.equal(await statusFrom(secret, '198.51.100.1'), 200);
    await test.keys.update(key.id, { allowFrom: ['10.0.0.0/8'] }, OPERATOR);
    await until(async () => (await statusFrom(secret, '198.51.100.1')) === 403);
    await test.keys.update(key.id, { allowFrom: null }, OPERATOR);
    await until(async () => (await statusFrom(secret, '198.51.100.1')) === 200);
  });

  it('are checked before limits: a request from elsewhere uses none up', async () => {
    const fields = { name: 'Both', roles: ['GUEST'], allowFrom: ['10.0.0.0/8'], limits: ['1/h'] };
    const { key: secret } = await test.keys.create(fields, OPERATOR);
    for (const status of [403, 403]) assert.equal(await statusFrom(secret, '198.51.100.1'), status);
    for (const status of [200, 429]) assert.equal(await statusFrom(secret, '10.0.0.1'), status);
  });
});
