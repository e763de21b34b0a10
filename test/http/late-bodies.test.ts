import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Hono } from 'hono';
import { bearerAuth, type BearerEnv } from '../../src/http/bearer-auth.ts';
import { listen } from '../../src/http/server.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { connectTo, readToEnd } from '../support/client.ts';
import { describeOnEach } from '../support/dialects.ts';
import { countKeys } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

const MUTATION = JSON.stringify({
  query: 'mutation { createApiKey(input: { name: "Too late", roles: [GUEST] }) { apiKey { name } } }',
});
const ONLINE = JSON.stringify({ query: '{ online }' });

describeOnEach('a request whose body arrives late', () => {
  let test: TestService;
  let key: { secret: string; id: string };
  beforeEach(async () => {
    test = await startTestService();
    const { key: secret, apiKey: created } = await test.keys.create({ name: 'Late', roles: ['ADMIN'] }, OPERATOR);
    key = { secret, id: created.id };
  });
  afterEach(() => test.stop());

  /** Sends the head of a request, does something once the server has let that in, and sends the body. */
  async function sendInTwo(url: string, body: string, isChunked: boolean, between: () => Promise<unknown>) {
    const socket = await connectTo(url);
    const head = [
      'POST /graphql HTTP/1.1',
      'Host: localhost',
      `Authorization: Bearer ${key.secret}`,
      'Content-Type: application/json',
      isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`,
      'Connection: close',
      'Expect: 100-continue',
    ];
    const continued = once(socket, 'data');
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    assert.match(String((await continued)[0]), /^HTTP\/1\.1 100 /);
    await between();
    const answer = readToEnd(socket);
    socket.write(isChunked ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body);
    return answer;
  }

  for (const [what, body, isChunked] of [
    ['a repeated query', ONLINE, false],
    ['a mutation', MUTATION, false],
    ['a mutation in chunks', MUTATION, true],
  ] as const) {
    it(`is refused if its key was deleted meanwhile: ${what}`, async () => {
      // More than once, so that the operation is prepared and the key verified.
      for (let time = 0; time < 3; time += 1)
        assert.equal((await query(test.url, key.secret, '{ online }')).status, 200);
      const answer = await sendInTwo(test.url, body, isChunked, () => test.keys.delete([key.id], OPERATOR));
      assert.match(answer, /^HTTP\/1\.1 401 [^]*error="invalid_token"/);
      assert.equal(await countKeys(test.store.repository), 0, 'nothing was created');
    });
  }

  it('may do what its key may do by then, and counts as one use', async () => {
    const answer = await sendInTwo(test.url, MUTATION, false, () =>
      test.keys.update(key.id, { roles: ['GUEST'] }, OPERATOR),
    );
    assert.match(answer, /^HTTP\/1\.1 200 [^]*"code":"FORBIDDEN"/);
    await test.keys.finishActivity();
    assert.equal((await test.keys.usageOf([key.id])).get(key.id)?.uses, 1);
  });

  it('is refused by an app of its own that checks again: the rest of its handler does not run', async () => {
    let ran = false;
    const app = new Hono<BearerEnv>().use(bearerAuth({ keys: test.keys })).post('/graphql', async (c) => {
      await c.req.text();
      const refusal = await c.get('checkAgain')();
      if (refusal) return refusal;
      ran = true;
      return c.text('done');
    });
    const server = await listen({ app, host: '127.0.0.1', port: 0 });
    assert.match(await sendInTwo(server.url, 'text', true, async () => {}), /^HTTP\/1\.1 200 [^]*done/);
    assert.equal(ran, true);
    ran = false;
    const answer = await sendInTwo(server.url, 'text', true, () => test.keys.delete([key.id], OPERATOR));
    assert.match(answer, /^HTTP\/1\.1 401 [^]*error="invalid_token"/);
    assert.equal(ran, false);
    await server.stop(0);
  });
});
