import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { connectTo } from '../../support/client.ts';
import { askFastCgi, fastCgiAnswers, fastCgiPairs, fastCgiQuestion, fastCgiRecord } from '../../support/fastcgi.ts';
import { type AskedServer, routeTo, SITE, startAskedServer } from '../../support/forward-auth.ts';
import { until } from '../../support/until.ts';

const BEGIN = fastCgiRecord(1, Buffer.from([0, 2, 0, 0, 0, 0, 0, 0]));

describe('a web server that asks by FastCGI', () => {
  let server: AskedServer;
  let secret: string;
  let id: string;
  before(async () => {
    const routes = [
      routeTo('/public/**', { kind: 'open' }),
      routeTo('/api/**', { kind: 'all', permissions: ['GRAFANA:READ_ANY'] }, { preflightOpen: true }),
    ];
    server = await startAskedServer({ config: { routes, credentials: ['bearer', { header: 'x-api-key' }] } });
    const created = await server.keys.create(
      { name: 'Läufer', roles: ['GUEST'], permissions: ['GRAFANA:READ_ANY'] },
      OPERATOR,
    );
    [secret, id] = [created.key, created.apiKey.id];
  });
  after(() => server.stop());

  const variables = (target: string, more: Record<string, string> = {}) => ({
    REQUEST_METHOD: 'GET',
    REQUEST_URI: target,
    HTTP_HOST: SITE,
    REMOTE_ADDR: '203.0.113.7',
    SERVER_SOFTWARE: 'Apache',
    ...more,
  });
  const withKey = () => ({ HTTP_AUTHORIZATION: `Bearer ${secret}` });
  const ask = async (asked: Record<string, string>) =>
    fastCgiAnswers(await askFastCgi(server.fastCgiPort, fastCgiQuestion(asked)));

  it('gets variables for a request that may pass', async () => {
    const requestId = 'trace-7.0';
    assert.deepEqual(await ask(variables('/api/x?y', { ...withKey(), HTTP_X_REQUEST_ID: requestId })), [
      {
        text: [
          'Status: 200',
          `Variable-AUTH_KEY_ID: ${id}`,
          'Variable-AUTH_KEY_NAME: L%C3%A4ufer',
          'Variable-AUTH_ROLES: GUEST',
          'Variable-AUTH_PERMISSION: GRAFANA:READ_ANY',
          `Variable-REQUEST_ID: ${requestId}`,
          '',
          '',
        ].join('\r\n'),
        status: 0,
      },
    ]);
    const [open] = await ask(variables('/public/x', withKey()));
    assert.match(open!.text, /^Status: 200\r\nVariable-AUTH_KEY_ID: \r\n/);
    const [byHeader] = await ask(variables('/api/x', { HTTP_X_API_KEY: secret }));
    assert.match(byHeader!.text, /^Status: 200\r\n/);
    const preflight = { REQUEST_METHOD: 'OPTIONS', HTTP_ORIGIN: 'https://a.example.org' };
    const [passed] = await ask(variables('/api/x', { ...preflight, HTTP_ACCESS_CONTROL_REQUEST_METHOD: 'POST' }));
    assert.match(passed!.text, /^Status: 200\r\n/);
    const others: Record<string, string>[] = [
      { HTTP_UPGRADE: 'websocket' },
      { CONTENT_LENGTH: '4' },
      { HTTP_TRANSFER_ENCODING: 'chunked' },
    ];
    for (const more of others) {
      const [none] = await ask(
        variables('/api/x', { ...preflight, HTTP_ACCESS_CONTROL_REQUEST_METHOD: 'POST', ...more }),
      );
      assert.match(none!.text, /^Status: 401\r\n/);
    }
  });

  it('gets the answer for the client of a request that may not', async () => {
    const [refused] = await ask(variables('/api/x'));
    assert.match(refused!.text, /^Status: 401\r\n/);
    assert.match(refused!.text, /\r\nWWW-Authenticate: Bearer realm="svc-api"\r\n/);
    assert.match(refused!.text, /\r\nCache-Control: no-store\r\n/);
    assert.match(refused!.text, /\r\n\r\n\{"errors":\[\{"message":"Missing API key/);
    for (const target of [
      '/elsewhere',
      '/public/../api/x',
      '/public/x#',
      '//public/x',
      `https://${SITE}/public/x`,
      '*',
    ])
      assert.match((await ask(variables(target, withKey())))[0]!.text, /^Status: 403\r\n/);
  });

  it('says in its configuration what is required', async () => {
    const statusWith = async (require: string) =>
      /^Status: (\d+)/.exec((await ask(variables('/other', { ...withKey(), SVC_API_REQUIRE: require })))[0]!.text)![1];
    assert.equal(await statusWith('permission=GRAFANA:READ_ANY'), '200');
    assert.equal(await statusWith('permission=GRAFANA:UPDATE_ANY'), '403');
    assert.equal(await statusWith('key'), '200');
    assert.equal(await statusWith('permission=GRAFANA:REED_ANY'), '403');
    assert.equal(await statusWith(''), '403');
    const [forged] = await ask(variables('/other', { ...withKey(), HTTP_SVC_API_REQUIRE: 'key' }));
    assert.match(forged!.text, /^Status: 403\r\n/);
  });

  it('is refused by routes if its client asks some services for another request', async () => {
    const overriding = { HTTP_X_HTTP_METHOD_OVERRIDE: 'DELETE' };
    assert.match((await ask(variables('/public/x', overriding)))[0]!.text, /^Status: 403\r\n/);
    const [required] = await ask(variables('/x', { ...overriding, ...withKey(), SVC_API_REQUIRE: 'key' }));
    assert.match(required!.text, /^Status: 200\r\n/);
  });

  it('is refused without one of the variables that say which request it is', async () => {
    for (const name of ['REQUEST_METHOD', 'REQUEST_URI', 'HTTP_HOST'] as const) {
      const { [name]: _, ...others } = variables('/public/x');
      assert.match((await ask(others))[0]!.text, /^Status: 403\r\n/);
    }
  });

  it('says from where the client comes, whatever the client says', async () => {
    const forged = { HTTP_X_FORWARDED_FOR: '198.51.100.1', HTTP_FORWARDED: 'for=198.51.100.1' };
    await ask(variables('/elsewhere/from', { ...withKey(), ...forged, REMOTE_ADDR: '203.0.113.99' }));
    const { fields } = server.lines.find(({ fields }) => JSON.stringify(fields).includes('/elsewhere/from'))!;
    assert.equal((fields as { address: string }).address, '203.0.113.99');
  });

  it('may ask again on the same connection, and in pieces', async () => {
    const [first, second] = ['/public/x', '/api/x'].map((target, index) =>
      fastCgiQuestion(variables(target, { HTTP_X_LONG: 'x'.repeat(300) }), { id: index + 1, keep: index === 0 }),
    );
    const bytes = Buffer.concat([first!, second!]);
    for (const pieces of [
      [bytes],
      Array.from({ length: bytes.length }, (_, index) => bytes.subarray(index, index + 1)),
    ]) {
      const answers = fastCgiAnswers(await askFastCgi(server.fastCgiPort, ...pieces));
      assert.deepEqual(
        answers.map(({ text }) => text.slice(0, 11)),
        ['Status: 200', 'Status: 401'],
      );
    }
  });

  it('is told that there is no other role than that of an authorizer', async () => {
    const answer = fastCgiAnswers(
      await askFastCgi(server.fastCgiPort, fastCgiQuestion({}, { role: 1 }).subarray(0, 16)),
    );
    assert.deepEqual(answer, [{ text: '', status: 3 }]);
  });

  it('that reads no answers is not read either, and its connection is closed', async () => {
    const own = await startAskedServer({ idleMs: 200 });
    const socket = await connectTo(`http://127.0.0.1:${own.fastCgiPort}`);
    const question = fastCgiQuestion(variables('/x'), { keep: true });
    const questions = Buffer.concat(Array<Buffer>(1000).fill(question));
    // More than the buffers of the system and of both ends hold.
    const most = 64 * 1024 * 1024;
    let taken = 0;
    const send = () =>
      socket.write(questions, (error) => {
        if (error) return;
        taken += questions.length;
        if (taken < most) send();
      });
    send();
    await until(() => socket.closed || taken >= most);
    socket.destroy();
    await own.stop();
    assert.ok(taken < most, `${taken} bytes`);
  });

  it('is believed only from addresses that are trusted', async () => {
    const own = await startAskedServer({
      config: { routes: [routeTo('/**', { kind: 'open' })] },
      trust: ['192.0.2.1'],
    });
    const [answer] = fastCgiAnswers(await askFastCgi(own.fastCgiPort, fastCgiQuestion(variables('/x'))));
    assert.match(answer!.text, /^Status: 403\r\n/);
    await own.stop();
  });

  const pairs = fastCgiPairs(variables('/public/x'));
  for (const [what, ...pieces] of [
    ['HTTP', Buffer.from('GET /public/x HTTP/1.1\r\nHost: x\r\n\r\n')],
    ['another version', fastCgiRecord(1, Buffer.alloc(8), { version: 2 })],
    ['a request that begins twice', BEGIN, BEGIN],
    ['a beginning that is too short', fastCgiRecord(1, Buffer.alloc(1))],
    ['parameters of another request', BEGIN, fastCgiRecord(4, pairs, { id: 2 })],
    ['parameters without a request', fastCgiRecord(4, pairs)],
    ['parameters that are cut off', BEGIN, fastCgiRecord(4, pairs.subarray(0, -1)), fastCgiRecord(4, Buffer.alloc(0))],
    [
      'a length that is longer than all',
      BEGIN,
      fastCgiRecord(4, Buffer.from([255, 255, 255, 255, 0])),
      fastCgiRecord(4, Buffer.alloc(0)),
    ],
    ['too many parameters', BEGIN, ...Array.from({ length: 3 }, () => fastCgiRecord(4, Buffer.alloc(0xffff)))],
    ['a body', BEGIN, fastCgiRecord(5, Buffer.from('body'))],
    ['a question about values', fastCgiRecord(9, Buffer.alloc(0), { id: 0 })],
  ] as [string, ...Buffer[]][]) {
    it(`is left alone if it sends ${what}`, async () => {
      assert.equal(await askFastCgi(server.fastCgiPort, ...pieces), '');
      assert.match((await ask(variables('/public/x')))[0]!.text, /^Status: 200\r\n/);
    });
  }
});
