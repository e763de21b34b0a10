import { Hono } from 'hono';
import { bearerAuth, listen, openKeys } from 'svc-api';
import type { BearerAuthOptions, BearerEnv, ListenOptions, RunningServer } from 'svc-api';

const keys = await openKeys();
const options: BearerAuthOptions = { keys, permission: 'SERVICES:READ_ANY' };

const app = new Hono<BearerEnv>();
app.use('/backups/*', bearerAuth(options));
app.get('/backups/latest', (c) => c.json({ by: c.get('principal').apiKey.name }));
app.post('/backups/new', async (c) => {
  const { disk } = await c.req.json<{ disk: string }>();
  // A body can take long to arrive: returns the reply if the key is no longer valid.
  return (await c.get('checkAgain')()) ?? c.json({ disk });
});

const place: ListenOptions = { app, host: '127.0.0.1', port: Number(process.env['PORT']) };
const server: RunningServer = await listen(place);
console.log(`Listening on ${server.url}`);
process.once('SIGTERM', () => void server.stop().then(() => keys.close()));
