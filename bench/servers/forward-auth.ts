import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RESOURCES, storePath } from '../stores.ts';
import { createApp, listen, loadConfig, openKeys } from '../svc-api.ts';
import { folder, ready } from './common.ts';

/** The number of routes, for ten hosts. The requests match `/api/service7/items/*` of `host7`. */
const count = Number(process.argv[3]);
const routes = Array.from({ length: count }, (_, index) => ({
  host: `host${index % 10}.example.org`,
  path: `/api/service${count === 10 ? 7 : Math.floor(index / 10)}/items/*`,
  methods: ['GET', 'HEAD'],
  allow: 'ITEM:UPDATE_ANY',
}));
const file = join(folder, `routes-${count}.yaml`);
writeFileSync(file, JSON.stringify({ resources: RESOURCES, routes }));

const config = await loadConfig({ file });
const keys = await openKeys({ database: storePath(folder), resources: RESOURCES, ifMissing: 'fail' });
const server = await listen({ app: await createApp({ keys, config }), host: '127.0.0.1', port: 0 });
ready(Number(new URL(server.url).port));
