import { graphqlServer } from '@hono/graphql-server';
import { serve } from '@hono/node-server';
import { buildSchema } from 'graphql';
import { Hono } from 'hono';
import { type Caller, naiveCheck, ready, typeDefs } from './common.ts';
import { ITEMS } from '../workloads.ts';

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
    rootResolver: (c) => ({ me: c.get('caller') as Caller, items: ITEMS }),
  }),
);
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => ready(port));
