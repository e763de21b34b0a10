import { readFileSync } from 'node:fs';
import { firstItems, resizeItem } from '../items.ts';
import { postgresPath, RESOURCES, storePath } from '../stores.ts';
import { createApp, listen, openKeys } from '../svc-api.ts';
import { folder, ready } from './common.ts';

/** The host's part of the schema. */
const extension = {
  typeDefs: `
    "An item."
    type Item { "Its id." id: ID! "Its name." name: String! "In bytes." size: Int! "Whether it is well." ok: Boolean! }
    extend type Query {
      "The first items."
      items("How many." first: Int!): [Item!]!
        @requires(resource: ITEM, action: READ_ANY)
        @listSize(assumedSize: 600, slicingArguments: ["first"])
      "Items that only few keys may see."
      drafts: [Item!] @requires(resource: ITEM, action: DELETE_ANY)
    }
    extend type Mutation {
      "Changes the size of an item."
      resizeItem("Its id." id: ID!, "In bytes." size: Int!): Item! @requires(resource: ITEM, action: UPDATE_ANY)
    }
  `,
  resolvers: {
    Query: { items: (_parent: unknown, { first }: { first: number }) => firstItems(first), drafts: () => [] },
    Mutation: { resizeItem: (_parent: unknown, { id, size }: { id: string; size: number }) => resizeItem(id, size) },
  },
  resources: RESOURCES,
};

const database = process.argv[3] === 'postgres' ? readFileSync(postgresPath(folder), 'utf8') : storePath(folder);
const keys = await openKeys({ database, resources: RESOURCES, ifMissing: 'fail' });
const server = await listen({ app: await createApp({ keys, extensions: [extension] }), host: '127.0.0.1', port: 0 });
ready(Number(new URL(server.url).port));
