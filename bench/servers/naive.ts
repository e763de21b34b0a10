import { graphqlServer } from '@hono/graphql-server';
import { serve } from '@hono/node-server';
import { buildSchema } from 'graphql';
import { Hono } from 'hono';
import { firstItems, resizeItem } from '../items.ts';
import { type Caller, naiveCheck, ready, refuse, typeDefs } from './common.ts';

const check = naiveCheck();
const app = new Hono<{ Variables: { caller: Caller } }>();
app.use('/graphql', async (c, next) => {
  const caller = check(c.req.header('authorization'));
  if (!caller) return c.json({ errors: [{ message: 'Unauthorized' }] }, 401);
  c.set('caller', caller);
  return next();
});
app.use(
  '/graphql',
  graphqlServer({
    schema: buildSchema(typeDefs),
    rootResolver: (c) => ({
      me: c.get('caller') as Caller,
      items: ({ first }: { first: number }) => firstItems(first),
      drafts: refuse,
      resizeItem: ({ id, size }: { id: string; size: number }) => resizeItem(id, size),
    }),
  }),
);
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => ready(port));
