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
import { DEVICE_GRANT } from '../../src/features/consent/oauth/paths.ts';
import { listen } from '../../src/http/listen.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { APP, askDevice } from '../features/consent/support/consent.ts';
import { Visitor } from '../features/console/support/console.ts';
import { connectTo, readToEnd } from '../support/client.ts';
import { describeOnEach } from '../support/dialects.ts';
import { authenticate, type Child, countKeys, createChild, type Loss, LOSSES, whileLimited } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';
import { Consent } from '../../src/features/consent/consent.ts';

const MUTATION = JSON.stringify({
  query: 'mutation { createApiKey(input: { name: "Too late", roles: [GUEST] }) { apiKey { name } } }',
});
const ONLINE = JSON.stringify({ query: '{ online }' });

describeOnEach('a request whose body arrives late', () => {
  let test: TestService;
  let key: Child;
  beforeEach(async () => {
    test = await startTestService({ consent: 'both', app: { console: true, clients: [APP] } });
    key = await createChild(test.keys, { roles: ['ADMIN'] });
  });
  afterEach(() => test.stop());

  /** Sends the head of a request, runs `between` once the server has accepted it, and then sends the body. */
  async function sendInTwo(url: string, body: string, isChunked: boolean, between: () => unknown, more = {}) {
    const socket = await connectTo(url);
    const {
      path = '/graphql',
      type = 'application/json',
      by = `Authorization: Bearer ${key.secret}`,
    }: Partial<Record<'path' | 'type' | 'by', string>> = more;
    const head = [
      `POST ${path} HTTP/1.1`,
      `Host: ${new URL(url).host}`,
      by,
      `Content-Type: ${type}`,
      isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`,
      'Connection: close',
      'Expect: 100-continue',
    ];
    const continued = once(socket, 'data');
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    assert.match(String((await continued)[0]), /^HTTP\/1\.1 100 /);
    // The refusal can come before the body.
    const answer = readToEnd(socket);
    await between();
    socket.write(isChunked ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body);
    return answer;
  }

  for (const [what, body, isChunked] of [
    ['a repeated query', ONLINE, false],
    ['a mutation', MUTATION, false],
    ['a mutation in chunks', MUTATION, true],
  ] as const) {
    it(`is refused if its key was deleted meanwhile: ${what}`, async () => {
      // Repeated, so that the operation is prepared and the key cached.
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
    assert.equal((await test.keys.useOf([key.id])).get(key.id)?.uses, 1);
  });

  describe("is checked against the key's permissions at its end, even if the key was cached again:", () => {
    const permission = 'API_KEY:CREATE_ANY';
    /** A new key, and a function that reduces its access. If still accepted, the key is cached by then. */
    const losing = async (lose: Loss['lose'], more: object = {}) => {
      key = await createChild(test.keys, { roles: ['ADMIN'], ...more });
      return async () => {
        await lose(test, key);
        await authenticate(test.keys, key.secret);
      };
    };
    const REFUSED = {
      401: /^HTTP\/1\.1 401 [^]*invalid_token/,
      403: /^HTTP\/1\.1 403 [^]*(insufficient_scope|not be used from this address)/,
    };
    const LIST = JSON.stringify({ query: '{ apiKeys { edges { node { name } } } }' });
    const FORBIDDEN = /^HTTP\/1\.1 200 [^]*"code":"FORBIDDEN"[^]*"data":\{"apiKeys":null\}/;
    /** GraphQL answers a key that is still accepted, without the fields that it cannot read. */
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
        // Prepared operations too.
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
        // The message names one of the permissions to read keys; which one depends on their order.
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
            const answer = await sendInTwo(url, '"text"', true, between);
            assert.match(answer, REFUSED[refused], `${loss}: ${answer}`);
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

  describe('with a form,', () => {
    const type = 'application/x-www-form-urlencoded';
    const formOf = (fields: Record<string, string>) => new URLSearchParams(fields).toString();
    const OWN = 'Sec-Fetch-Site: same-origin\r\n';
    const NEW_KEY = formOf({ name: 'Too late', role: 'GUEST', end: 'never', step: 'create' });
    /** Signs in with the key. */
    const signIn = async () => {
      const visitor = new Visitor(test.url);
      await visitor.signIn(key.secret);
      return visitor;
    };
    const sendForm = (visitor: Visitor, between: () => unknown) =>
      sendInTwo(test.url, NEW_KEY, true, between, {
        path: '/console/keys/new',
        type,
        by: `${OWN}Cookie: ${visitor.cookie}`,
      });

    it('is done in the console if nothing has changed', async () => {
      const before = await countKeys(test.store.repository);
      await sendForm(await signIn(), () => {});
      assert.equal(await countKeys(test.store.repository), before + 1);
    });

    for (const [loss, { lose, refused }] of Object.entries(LOSSES))
      it(`is not done in the console if the session's key has lost what it needs: ${loss}`, async () => {
        let left = 0;
        const visitor = await signIn();
        const answer = await sendForm(visitor, async () => {
          await lose(test, key);
          await authenticate(test.keys, key.secret);
          left = await countKeys(test.store.repository);
        });
        assert.equal(await countKeys(test.store.repository), left);
        const [, location = ''] = /^HTTP\/1\.1 303 [^]*\blocation: (\S*)/i.exec(answer) ?? [];
        if (refused === 403) assert.equal((await visitor.open(`keys/new${location}`)).status, 403);
        else assert.match(location, /sign-in\?/);
      });

    it('is not done in the console if the session has ended, though its key goes on', async () => {
      const visitor = await signIn();
      const before = await countKeys(test.store.repository);
      const answer = await sendForm(visitor, async () => {
        const elsewhere = new Visitor(test.url);
        elsewhere.cookie = visitor.cookie;
        await elsewhere.open('');
        await elsewhere.submit('sign-out');
      });
      assert.match(answer, /^HTTP\/1\.1 303 [^]*location: \S*sign-in\?/i);
      assert.equal(await countKeys(test.store.repository), before);
    });

    for (const [loss, { lose, refused }] of Object.entries(LOSSES))
      if (refused === 401)
        it(`does not sign in with an ended key: ${loss}`, async () => {
          const to = { path: '/console/sign-in', type, by: OWN.trim() };
          const answer = await sendInTwo(test.url, formOf({ key: key.secret }), true, () => lose(test, key), to);
          assert.match(answer, /^HTTP\/1\.1 403 /);
          assert.doesNotMatch(answer, /set-cookie/i);
        });

    /** The request with which an application fetches its key. */
    const toToken = { path: '/oauth/token', type, by: 'Accept: */*' };
    const approved = async () => {
      const { device_code: code, user_code: userCode } = await askDevice(test.url, { scope: 'role:ADMIN' });
      const found = await authenticate(test.keys, key.secret);
      assert.ok('principal' in found);
      await test.keys
        .feature(Consent)
        .approve(
          await test.keys.feature(Consent).find({ userCode }),
          { roles: ['ADMIN'], permissions: [], expiresAt: null },
          found.principal,
        );
      return { userCode, form: formOf({ grant_type: DEVICE_GRANT, device_code: code, client_id: APP.id }) };
    };

    it('gives an application no key if its request is refused meanwhile', async () => {
      const { userCode, form } = await approved();
      const before = await countKeys(test.store.repository);
      const deny = async () =>
        test.keys.feature(Consent).deny(await test.keys.feature(Consent).find({ userCode }), null);
      assert.match(await sendInTwo(test.url, form, true, deny, toToken), /^HTTP\/1\.1 400 [^]*"access_denied"/);
      assert.equal(await countKeys(test.store.repository), before);
    });

    // Not expiry, since requests for consent end before the one-hour key does. Approvals are not bound to a network
    // either.
    const losses = Object.entries(LOSSES).filter(([loss]) => loss !== 'it expires');
    for (const [loss, { lose }] of losses)
      if (!loss.includes('elsewhere') && loss !== 'it gets another secret')
        it(`gives an application no key if the approving key has lost what it needs: ${loss}`, async () => {
          const { form } = await approved();
          const answer = await sendInTwo(test.url, form, true, () => lose(test, key), toToken);
          assert.match(answer, /^HTTP\/1\.1 400 [^]*"access_denied"/);
        });

    it('approves nothing with a key that has lost what it needs', async () => {
      for (const [loss, { lose }] of losses) {
        key = await createChild(test.keys, { roles: ['ADMIN'] });
        const { user_code: userCode } = await askDevice(test.url, { scope: 'role:ADMIN' });
        const form = formOf({ user_code: userCode, scope: 'role:ADMIN', key: key.secret, decision: 'approve' });
        const to = { path: '/device', type, by: OWN.trim() };
        const answer = await sendInTwo(test.url, form, true, () => lose(test, key), to);
        assert.match(answer, /^HTTP\/1\.1 403 /, loss);
        const { status } = await test.keys.feature(Consent).find({ userCode });
        assert.equal(status, 'PENDING', loss);
      }
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
