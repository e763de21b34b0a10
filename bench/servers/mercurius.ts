import type { AddressInfo } from 'node:net';
import fastify from 'fastify';
import mercurius from 'mercurius';
import { type Caller, naiveCheck, ready, resolvers, typeDefs } from './common.ts';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller;
  }
}

const check = naiveCheck();
const app = fastify();
app.decorateRequest('caller');
app.addHook('onRequest', async (request, reply) => {
  const caller = check(request.headers.authorization);
  if (!caller) return reply.code(401).send({ errors: [{ message: 'Unauthorized' }] });
  request.caller = caller;
  return undefined;
});
// `jit` compiles a query on first use.
const jit = process.argv[3] === 'jit' ? { jit: 1 } : {};
await app.register(mercurius, {
  schema: typeDefs,
  resolvers: resolvers as never,
  context: ({ caller }) => ({ caller }),
  ...jit,
});
await app.listen({ port: 0, host: '127.0.0.1' });
ready((app.server.address() as AddressInfo).port);
