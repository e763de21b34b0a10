import { Hono } from 'hono';
import { storePath } from '../stores.ts';
import { bearerAuth, listen, openKeys } from '../svc-api.ts';
import { CONSTANT } from '../workloads.ts';
import { folder, ready } from './common.ts';

const keys = await openKeys({ database: storePath(folder), ifMissing: 'fail' });
const app = new Hono().use(bearerAuth({ keys })).get('/', (c) => c.json(CONSTANT));
const server = await listen({ app, host: '127.0.0.1', port: 0 });
ready(Number(new URL(server.url).port));
