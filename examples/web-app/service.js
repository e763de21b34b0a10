import { serve } from '@hono/node-server';
import { Hono } from 'hono';

/**
 * The service behind the guard. It knows nothing of keys: every request that gets here may pass, and headers say whose
 * it is. So nobody else may reach it, which is why it listens on a loopback address alone.
 */
const app = new Hono();
const notes = [];

/** Whose key a request has, as `svc-api guard` says. */
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
