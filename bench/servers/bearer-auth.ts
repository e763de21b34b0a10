import { Hono } from 'hono';
import { CONSTANT } from '../items.ts';
import { storePath } from '../stores.ts';
import { bearerAuth, listen, openKeys } from '../svc-api.ts';
import { folder, ready } from './common.ts';

const app = new Hono();
const mode = process.argv[3];
// The cost of Hono and of a call of middleware.
if (mode === 'empty') app.use((_c, next) => next());
else {
  // Otherwise a limit for all keys, which none of them reaches.
  const defaultLimits = mode === undefined ? [] : [mode];
  app.use(bearerAuth({ keys: await openKeys({ database: storePath(folder), ifMissing: 'fail', defaultLimits }) }));
}
app.get('/', (c) => c.json(CONSTANT));
const server = await listen({ app, host: '127.0.0.1', port: 0 });
ready(Number(new URL(server.url).port));
