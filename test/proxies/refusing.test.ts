import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { ask, askForWebSocket, CLIENT, type Sent } from '../support/proxies/client.ts';
import { SITE } from '../support/proxies/configurations.ts';
import { until } from '../support/until.ts';
import { describeEachProxy } from '../support/proxies/describe.ts';

type Header = readonly [name: string, value: string];

/** RFC 7617 and RFC 6750: a key is a password or a bearer token. */
const CHALLENGE = 'Basic realm="svc-api", charset="UTF-8", Bearer realm="svc-api"';

/** Headers with which clients claim another address. */
const addressed = (address: string): Header[] => [
  ['X-Forwarded-For', address],
  ['X-Real-IP', address],
  ['Forwarded', `for=${address}`],
  ['X-Client-IP', address],
  ['True-Client-IP', address],
  ['X-Envoy-External-Address', address],
];

describeEachProxy('a refused request', {}, (site, { program, resource }) => {
  /** The status and challenge of a refusal. Nothing may reach the service. */
  const refusal = async (headers: readonly Header[], sent: Sent = {}) => {
    const before = site().service.requests();
    const { status, headers: answered } = await ask(site().port, { path: '/api/x', ...sent, headers });
    assert.equal(site().service.requests(), before);
    return [status, answered['www-authenticate']];
  };
  const send = async (headers: readonly Header[], sent: Sent = {}) =>
    (await ask(site().port, { ...sent, headers })).status;
  const withPassword = ([, value]: Header): Header => {
    const pair = `any:${value.slice('Bearer '.length)}`;
    return ['Authorization', `Basic ${Buffer.from(pair).toString('base64')}`];
  };

  it('without a key asks for one', async () => {
    for (const headers of [[], [['Authorization', 'Digest x'] as const]]) {
      const [status, challenge] = await refusal(headers);
      assert.equal(status, 401);
      assert.equal(challenge, CHALLENGE);
    }
  });

  it('with an invalid key says so', async () => {
    for (const key of ['svc_000000000000_wrong', 'x'.repeat(6000)]) {
      const [status, challenge] = await refusal([['Authorization', `Bearer ${key}`]]);
      assert.equal(status, 401);
      assert.equal(challenge, `${CHALLENGE}, error="invalid_token"`);
    }
  });

  it('with a key that lacks the permission names it', async () => {
    const [status, challenge] = await refusal([await site().keyWith({ roles: ['GUEST'] })]);
    assert.equal(status, 403);
    assert.equal(challenge, `Bearer realm="svc-api", error="insufficient_scope", scope="${resource}:READ_ANY"`);
  });

  it('with two credentials is a refused one, also where one of them is valid', async () => {
    const key = await site().reader();
    for (const second of [key, ['Authorization', 'Bearer x'], ['authorization', 'Basic eDp5']] as Header[]) {
      // nginx itself refuses two such headers.
      assert.ok([400, 401].includes(Number((await refusal([key, second]))[0])));
    }
  });

  it('by a method that the key has no permission for', async () => {
    const methods = {
      GET: 'READ',
      HEAD: 'READ',
      OPTIONS: 'READ',
      POST: 'CREATE',
      PUT: 'UPDATE',
      PATCH: 'UPDATE',
      DELETE: 'DELETE',
    };
    for (const action of ['READ', 'CREATE', 'UPDATE', 'DELETE'] as const) {
      const key = await site().keyWith({ permissions: [site().may(action)] });
      for (const [method, asked] of Object.entries(methods)) {
        const before = site().service.requests();
        const status = await send([key], { method, path: '/api/x' });
        const seen = site().service.requests() - before;
        assert.deepEqual([action, method, status, seen], [action, method, ...(asked === action ? [200, 1] : [403, 0])]);
      }
    }
  });

  it('that would be another one for the service than it seems', async () => {
    const key = await site().reader();
    for (const headers of [
      [['X-HTTP-Method-Override', 'DELETE']],
      [['X-Method-Override', 'DELETE']],
      [['X-HTTP-Method', 'DELETE']],
    ] as Header[][])
      assert.equal((await refusal([key, ...headers]))[0], 403);
    // A POST is not a read, whatever upgrade it requests.
    for (const headers of [
      [['Upgrade', 'websocket']],
      [
        ['Upgrade', 'websocket'],
        ['Connection', 'Upgrade'],
        ['Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='],
      ],
    ] as Header[][])
      assert.equal((await refusal([key, ...headers], { method: 'POST' }))[0], 403);
  });

  it('of another site, which a browser sends with the password that it knows', async () => {
    const password = withPassword(await site().editor());
    const bearer = await site().editor();
    const cross: Header[] = [['Sec-Fetch-Site', 'cross-site']];
    const foreign: Header[] = [['Origin', 'https://evil.example']];
    for (const headers of [cross, [['Sec-Fetch-Site', 'same-site']] as Header[], foreign, [...cross, ...foreign]]) {
      for (const method of ['POST', 'PUT', 'DELETE'])
        assert.equal((await refusal([password, ...headers], { method }))[0], 403);
      assert.equal(await send([password, ...headers]), 200);
      assert.equal(await send([bearer, ...headers], { method: 'POST' }), 200);
      const lines = [password, ...headers].map((header) => header.join(': '));
      const before = site().service.requests();
      const [socket, answer] = await askForWebSocket(site().port, lines);
      socket.destroy();
      assert.match(answer, /^HTTP\/1\.1 403 /);
      assert.equal(site().service.requests(), before);
    }
    const own: Header[] = [
      ['Sec-Fetch-Site', 'same-origin'],
      ['Origin', `https://${SITE}`],
    ];
    assert.equal(await send([password, ...own], { method: 'POST' }), 200);
    const [socket, answer] = await askForWebSocket(
      site().port,
      [password, ...own].map((header) => header.join(': ')),
    );
    socket.destroy();
    assert.match(answer, /^HTTP\/1\.1 101 /);
  });

  it('over the limit of its key says when to try again', async () => {
    const key = await site().keyWith({ permissions: [site().may('READ')], limits: ['2/h'] });
    assert.deepEqual([await send([key]), await send([key])], [200, 200]);
    const { status, headers, got } = await ask(site().port, { headers: [key] });
    assert.deepEqual([status, got, Number(headers['retry-after']) > 1000], [429, undefined, true]);
  });

  it("from outside the networks of its key is judged by the client's address, whatever the client claims", async () => {
    const permissions = [site().may('READ')];
    const near = await site().keyWith({ permissions, allowFrom: [CLIENT] });
    const { key, id } = await site().create({ permissions, allowFrom: ['10.0.0.0/8'] });
    const far: Header = ['Authorization', `Bearer ${key}`];
    assert.equal(await send([near]), 200);
    assert.equal((await refusal([far]))[0], 403);
    const all = addressed('10.1.2.3');
    for (const headers of [all, ...all.map((header) => [header]), [all[0]!, ['X-Forwarded-For', '10.4.5.6'] as const]])
      assert.equal((await refusal([far, ...headers]))[0], 403);
    // They are written together, a little later.
    const refusals = () => site().keys.audit.read({ actor: id, action: 'REFUSE' }, OPERATOR);
    await until(async () => (await refusals()).length > 0);
    assert.deepEqual(new Set((await refusals()).map(({ address }) => address)), new Set([CLIENT]));
  });

  it('is the next one, when a key is disabled or deleted', async () => {
    for (const end of ['update', 'delete'] as const) {
      const { key, id } = await site().create({ permissions: [site().may('READ')] });
      const header: Header = ['Authorization', `Bearer ${key}`];
      assert.equal(await send([header]), 200);
      if (end === 'delete') await site().keys.delete([id], OPERATOR);
      else await site().keys.setEnabled(id, false, OPERATOR);
      assert.equal((await refusal([header]))[0], 401);
    }
  });

  // Last, because this address is refused from then on.
  it('with one invalid key after another counts for its address, whatever the client claims', async () => {
    const statuses = new Set<number>();
    for (let attempt = 1; attempt <= 40 && !statuses.has(429); attempt += 1) {
      const headers: Header[] = [['Authorization', `Bearer wrong${attempt}`], ...addressed(`10.1.2.${attempt}`)];
      statuses.add(await send(headers));
    }
    assert.deepEqual(statuses, new Set([401, 429]));
    const { headers } = await ask(site().port, { headers: [['Authorization', 'Bearer wrong']] });
    assert.ok(Number(headers['retry-after']) > 0, `${program}: ${JSON.stringify(headers)}`);
    assert.equal(await send([await site().reader()]), 200);
  });
});

describeEachProxy('a request that needs a permission to read, whatever its method', { rule: 'permission' }, (site) => {
  it('only reads, with every permission there is', async () => {
    const key = await site().editor();
    const allowed = {
      GET: 200,
      HEAD: 200,
      OPTIONS: 200,
      POST: 403,
      PUT: 403,
      PATCH: 403,
      DELETE: 403,
      PROPFIND: 403,
    };
    for (const [method, expected] of Object.entries(allowed))
      for (const path of ['/api/x', '/@acme%2Ftool', '/a//b;c?_method=GET']) {
        const before = site().service.requests();
        const { status } = await ask(site().port, { method, path, headers: [key] });
        const seen = site().service.requests() - before;
        assert.deepEqual([method, path, status, seen], [method, path, expected, expected === 200 ? 1 : 0]);
      }
    const [socket, answer] = await askForWebSocket(site().port, [key.join(': ')]);
    socket.destroy();
    assert.match(answer, /^HTTP\/1\.1 101 /);
  });
});
