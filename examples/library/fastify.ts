import fastify from 'fastify';
import { openKeys } from 'svc-api';
import { bearerAuth } from 'svc-api/fastify';

const app = fastify();
// It also works in a plugin or on a route.
app.addHook('onRequest', bearerAuth({ keys: await openKeys(), permission: 'SERVICES:READ_ANY' }));
app.get('/backups/latest', async (request) => ({ by: request.principal?.apiKey.name }));
app.post<{ Body: { disk: string } }>('/backups/new', async (request, reply) => {
  // A body can take long to arrive: this answers the request itself if the key is no longer valid.
  if (!(await request.checkAgain?.())) return reply;
  return { disk: request.body.disk };
});
await app.listen({ port: Number(process.env['PORT']) });
