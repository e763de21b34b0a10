import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { type AuthenticatedRequest, bearerAuth as forNode } from '../../src/express.ts';
import { bearerAuth as forFastify } from '../../src/fastify.ts';
import { bearerAuth, type BearerEnv } from '../../src/http/bearer-auth.ts';
import { listen } from '../../src/http/server.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { connectTo, readToEnd } from '../support/client.ts';
import { describeOnEach } from '../support/dialects.ts';
import { type Child, countKeys, createChild, type Loss, LOSSES, whileLimited } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

const MUTATION = JSON.stringify({
  query: 'mutation { createApiKey(input: { name: "Too late", roles: [GUEST] }) { apiKey { name } } }',
});
const ONLINE = JSON.stringify({ query: '{ online }' });

describeOnEach('a request whose body arrives late', () => {
  let test: TestService;
  let key: Child;
  beforeEach(async () => {
    test = await startTestService();
    key = await createChild(test.keys, { roles: ['ADMIN'] });
  });
  afterEach(() => test.stop());

  /** Sends the head of a request, does something once the server has let that in, and sends the body. */
  async function sendInTwo(url: string, body: string, isChunked: boolean, between: () => unknown, more = {}) {
    const socket = await connectTo(url);
    const { path = '/graphql', type = 'application/json' }: { path?: string; type?: string } = more;
    const head = [
      `POST ${path} HTTP/1.1`,
      'Host: localhost',
      `Authorization: Bearer ${key.secret}`,
      `Content-Type: ${type}`,
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
      assert.equal(await countKeys(test.store.repository), 1, 'nothing was created');
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

  describe('is judged by what its key may do by then, though somebody else has used that key again:', () => {
    const permission = 'API_KEY:CREATE_ANY';
    /** A new key, and what takes something from it: if it is still accepted, it is remembered as it is then. */
    const losing = async (lose: Loss['lose'], more: object = {}) => {
      key = await createChild(test.keys, { roles: ['ADMIN'], ...more });
      return async () => {
        await lose(test, key);
        await test.keys.authenticate(key.secret);
      };
    };
    const REFUSED = {
      401: /^HTTP\/1\.1 401 [^]*invalid_token/,
      403: /^HTTP\/1\.1 403 [^]*(insufficient_scope|not be used from this address)/,
    };
    const LIST = JSON.stringify({ query: '{ apiKeys { edges { node { name } } } }' });
    const FORBIDDEN = /^HTTP\/1\.1 200 [^]*"code":"FORBIDDEN"[^]*"data":\{"apiKeys":null\}/;
    /** How GraphQL answers: a key that may be used gets an answer, without what it may not read. */
    const refusedBy = (loss: string, refused: 401 | 403) => (loss.includes('narrowed') ? FORBIDDEN : REFUSED[refused]);
    const doors: Record<string, (done: () => void) => RequestListener | Promise<RequestListener>> = {
      Hono: (done) => {
        const app = new Hono<BearerEnv>().use(bearerAuth({ keys: test.keys, permission }));
        app.post('/graphql', async (c) => {
          await c.req.text();
          const refusal = await c.get('checkAgain')();
          if (!refusal) done();
          return refusal ?? c.text('done');
        });
        return getRequestListener(app.fetch, { overrideGlobalObjects: false });
      },
      'node:http': (done) => {
        const auth = forNode({ keys: test.keys, permission });
        return (incoming, outgoing) =>
          auth(incoming, outgoing, () => {
            incoming.resume().once('end', async () => {
              if (await (incoming as AuthenticatedRequest).checkAgain()) outgoing.end(done());
            });
          });
      },
      Express: (done) =>
        express()
          .use(forNode({ keys: test.keys, permission }), express.text({ type: '*/*' }))
          .post('/graphql', async (request, reply) => {
            if (await request.checkAgain!()) reply.end(done());
          }),
      Fastify: async (done) => {
        const app = fastify();
        const onRequest = forFastify({ keys: test.keys, permission });
        app.post('/graphql', { onRequest }, async (request, reply) =>
          (await request.checkAgain!()) ? (done(), 'done') : reply,
        );
        await app.ready();
        return (incoming, outgoing) => app.routing(incoming, outgoing);
      },
    };
    for (const isChunked of [false, true])
      it(`GraphQL, ${isChunked ? 'in chunks' : 'at once'}`, async () => {
        // Prepared, too.
        for (let time = 0; time < 3; time += 1) await sendInTwo(test.url, LIST, isChunked, () => {});
        for (const [loss, { lose, refused }] of Object.entries(LOSSES)) {
          const between = await losing(lose);
          assert.match(await sendInTwo(test.url, LIST, isChunked, between), refusedBy(loss, refused), loss);
        }
      });

    it('introspection of keys', async () => {
      const { secret } = await createChild(test.keys, { roles: ['GUEST'] });
      const more = { path: '/introspect', type: 'application/x-www-form-urlencoded' };
      const form = `token=${secret}`;
      assert.match(await sendInTwo(test.url, form, true, () => {}, more), /^HTTP\/1\.1 200 [^]*"active":true/);
      for (const [loss, { lose, refused }] of Object.entries(LOSSES)) {
        const between = await losing(lose);
        const answer = await sendInTwo(test.url, form, true, between, more);
        // It names one of the permissions with which keys are read, whichever is asked first.
        assert.match(answer, REFUSED[refused], loss);
        assert.doesNotMatch(answer, /"active"/, loss);
      }
    });

    for (const [door, listener] of Object.entries(doors))
      it(door, async () => {
        let ran = 0;
        const server = createServer(await listener(() => void (ran += 1)));
        await once(server.listen(0, '127.0.0.1'), 'listening');
        const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
        try {
          assert.match(await sendInTwo(url, '"text"', true, () => {}), /^HTTP\/1\.1 200 /);
          for (const [loss, { lose, refused }] of Object.entries(LOSSES)) {
            const between = await losing(lose);
            assert.match(await sendInTwo(url, '"text"', true, between), REFUSED[refused], loss);
          }
          assert.equal(ran, 1);
        } finally {
          server.close();
        }
      });

    describe('and while the store is asked for requests within its limits:', () => {
      const asks: Record<string, (loss: string, refused: 401 | 403) => Promise<void>> = {
        async 'GraphQL by GET'(loss, refused) {
          const url = `${test.url}/graphql?${new URLSearchParams(JSON.parse(LIST) as Record<string, string>).toString()}`;
          const reply = await fetch(url, { headers: { authorization: `Bearer ${key.secret}` } });
          const answer = `HTTP/1.1 ${reply.status} ${reply.headers.get('www-authenticate')} ${await reply.text()}`;
          assert.match(answer, refusedBy(loss, refused), loss);
        },
        async 'a handler without a body'(loss, refused) {
          const app = new Hono<BearerEnv>()
            .use(bearerAuth({ keys: test.keys, permission }))
            .get('/', (c) => c.text('done'));
          const server = await listen({ app, host: '127.0.0.1', port: 0 });
          const { status } = await fetch(server.url, { headers: { authorization: `Bearer ${key.secret}` } });
          await server.stop(0);
          assert.equal(status, refused, loss);
        },
      };
      for (const [door, ask] of Object.entries(asks))
        it(door, async () => {
          for (const [loss, { lose, refused }] of Object.entries(LOSSES)) {
            whileLimited(test.keys, await losing(lose, { limits: ['100/m'] }));
            await ask(loss, refused);
          }
        });
    });
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
