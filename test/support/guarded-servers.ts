import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type Express } from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { type AuthenticatedRequest, bearerAuth as forNode } from '../../src/express.ts';
import { bearerAuth as forFastify } from '../../src/fastify.ts';
import { bearerAuth as forHono, type BearerEnv } from '../../src/http/bearer-auth.ts';
import type { BearerAuthOptions } from '../../src/http/bearer-options.ts';
import { listen } from '../../src/http/listen.ts';

/**
 * A server behind `bearerAuth`. It answers with the name of the key, after it has read the body and checked the key
 * again.
 */
export interface GuardedServer {
  url: string;
  /** How many requests were accepted. */
  handled(): number;
  stop(): Promise<void>;
}

export type StartGuarded = (options: BearerAuthOptions) => Promise<GuardedServer>;

/** The same server in each framework that has a `bearerAuth`. */
export const GUARDED_SERVERS: Readonly<Record<string, StartGuarded>> = {
  Hono: async (options) => {
    let handled = 0;
    const app = new Hono<BearerEnv>().use(forHono(options)).all('/', async (c) => {
      handled += 1;
      await c.req.text();
      return (await c.get('checkAgain')()) ?? c.text(c.get('principal').apiKey.name);
    });
    const server = await listen({ app, host: '127.0.0.1', port: 0 });
    return { url: server.url, handled: () => handled, stop: () => server.stop(0) };
  },

  Express: async (options) => {
    let handled = 0;
    const app: Express = express().disable('x-powered-by');
    app.use(forNode(options), express.text({ type: () => true }));
    app.all('/', async (request, response) => {
      handled += 1;
      if (await request.checkAgain!()) response.type('text').send(request.principal!.apiKey.name);
    });
    return started(createServer(app), () => handled);
  },

  'node:http': async (options) => {
    let handled = 0;
    const auth = forNode(options);
    const answer = async (request: AuthenticatedRequest, name: (text: string) => void) => {
      handled += 1;
      await request.toArray();
      if (await request.checkAgain()) name(request.principal.apiKey.name);
    };
    const server = createServer((request, response) =>
      auth(request, response, () => void answer(request as AuthenticatedRequest, (name) => response.end(name))),
    );
    return started(server, () => handled);
  },

  Fastify: async (options) => {
    let handled = 0;
    const app = fastify({ keepAliveTimeout: 5000 });
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
    app.addHook('onRequest', forFastify(options));
    app.all('/', async (request, reply) => {
      handled += 1;
      return (await request.checkAgain!()) ? request.principal!.apiKey.name : reply;
    });
    return { url: await app.listen({ port: 0 }), handled: () => handled, stop: () => app.close() };
  },
};

async function started(server: Server, handled: () => number): Promise<GuardedServer> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };
  return { url: `http://127.0.0.1:${port}`, handled, stop };
}
