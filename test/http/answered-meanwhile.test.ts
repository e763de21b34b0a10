import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import fastify from 'fastify';
import { bearerAuth } from '../../src/express.ts';
import { bearerAuth as forFastify } from '../../src/fastify.ts';
import type { BearerAuthOptions } from '../../src/http/bearer-options.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { openTestKeys, type TestKeys } from '../support/keys.ts';

/** Answers requests for /busy, like a timeout. */
const answerBusy = ({ url }: IncomingMessage, outgoing: ServerResponse) => {
  if (url === '/busy') outgoing.end('busy');
};

/** Servers that can answer while a key is checked. They answer "welcome" to accepted requests. */
const SERVERS: Readonly<Record<string, (keys: BearerAuthOptions['keys']) => Promise<RequestListener | Server>>> = {
  'node:http': async (keys) => {
    const auth = bearerAuth({ keys });
    return (incoming, outgoing) => {
      auth(incoming, outgoing, () => outgoing.end('welcome'));
      answerBusy(incoming, outgoing);
    };
  },

  Express: async (keys) =>
    express()
      .use((incoming, outgoing, next) => {
        next();
        answerBusy(incoming, outgoing);
      })
      .use(bearerAuth({ keys }))
      .use((_, outgoing) => void outgoing.end('welcome')),

  Fastify: async (keys) => {
    const app = fastify();
    app.addHook('onRequest', (request, reply, done) => {
      done();
      if (request.url === '/busy') void reply.send('busy');
    });
    app.addHook('onRequest', forFastify({ keys }));
    app.get('/*', async () => 'welcome');
    await app.ready();
    return app.server;
  },

  'Fastify, by node:http': async (keys) => {
    const app = fastify();
    app.addHook('onRequest', (request, reply, done) => {
      done();
      answerBusy(request.raw, reply.raw);
    });
    app.addHook('onRequest', forFastify({ keys }));
    app.get('/*', async () => 'welcome');
    await app.ready();
    return app.server;
  },
};

for (const [name, make] of Object.entries(SERVERS))
  describe(`an answer of something else while bearerAuth checks a key, by ${name},`, () => {
    let test: TestKeys;
    let server: Server;
    /** Events that would end a process. */
    const unhandled: unknown[] = [];
    const note = (error: unknown) => void unhandled.push(error);
    before(async () => {
      process.on('unhandledRejection', note);
      test = await openTestKeys();
      const made = await make(test.keys);
      server = typeof made === 'function' ? createServer(made) : made;
      await once(server.listen(0, '127.0.0.1'), 'listening');
    });
    after(async () => {
      process.off('unhandledRejection', note);
      server.close();
      server.closeAllConnections();
      await test.store.close();
    });

    it('is the only one', async () => {
      // Its limit needs a request to the store.
      const limited = await test.keys.create({ name: 'Limited', roles: ['GUEST'], limits: ['100/h'] }, OPERATOR);
      for (const [path, key, answer] of [
        ['/busy', limited.key, 'busy'],
        ['/', limited.key, 'welcome'],
        ['/busy', 'svc_wrong', 'busy'],
        ['/busy', limited.key.replace(/.{6}$/, 'wrong1'), 'busy'],
      ] as const) {
        const { port } = server.address() as AddressInfo;
        const reply = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${key}` } });
        assert.equal(await reply.text(), answer, path);
      }
      assert.deepEqual(unhandled, []);
    });
  });
