import { serve } from '@hono/node-server';
import { Hono } from 'hono';

/**
 * The service behind the guard. It does not check keys: every request that arrives is allowed, and headers name its
 * key. It must not be reachable in any other way, so it listens on a loopback address only.
 */
const app = new Hono();
const notes = [];

/** The key of a request, from headers of `svc-api guard`. */
const caller = (c) => ({
  id: c.req.header('x-auth-key-id'),
  name: decodeURIComponent(c.req.header('x-auth-key-name')),
});

app.get('/notes', (c) => c.json({ caller: caller(c), notes }));

app.post('/notes', async (c) => {
  const { text } = await c.req.parseBody();
  if (typeof text !== 'string' || text.trim() === '') return c.json({ error: 'A note needs a text.' }, 400);
  notes.push({ text: text.trim().slice(0, 200), by: caller(c).name });
  if (notes.length > 100) notes.shift();
  return c.body(null, 204);
});

serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env.PORT ?? 0) }, ({ port }) =>
  console.log(`Listening on http://127.0.0.1:${port}`),
);
