import { readFileSync } from 'node:fs';
import { postgresPath, RESOURCES, storePath } from '../stores.ts';
import { createApp, listen, openKeys } from '../svc-api.ts';
import { ITEMS } from '../workloads.ts';
import { folder, ready } from './common.ts';

/** What a host adds to the schema. */
const extension = {
  typeDefs: `
    "An item."
    type Item { "Its id." id: ID! "Its name." name: String! "In bytes." size: Int! "Whether it is well." ok: Boolean! }
    extend type Query { "All items." items: [Item!]! @requires(resource: ITEM, action: READ_ANY) }
  `,
  resolvers: { Query: { items: () => ITEMS } },
  resources: RESOURCES,
};

const database = process.argv[3] === 'postgres' ? readFileSync(postgresPath(folder), 'utf8') : storePath(folder);
const keys = await openKeys({ database, resources: RESOURCES, ifMissing: 'fail' });
const server = await listen({ app: await createApp({ keys, extensions: [extension] }), host: '127.0.0.1', port: 0 });
ready(Number(new URL(server.url).port));
