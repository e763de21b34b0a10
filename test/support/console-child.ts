// Serves without a log until stdin ends. It must print nothing but its address.
import '../../scripts/jsx.ts';
import { writeSync } from 'node:fs';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { openTestKeys } from './keys.ts';
import { startServer } from './server.ts';

const { keys, store } = await openTestKeys();
const { key: secret } = await keys.create({ name: 'Admin', roles: ['ADMIN'] }, OPERATOR);
const resolvers = {
  Query: {
    fails: () => {
      throw new Error('not for the console');
    },
    endless: () => new Promise(() => {}),
  },
};
const typeDefs = `extend type Query {
  fails: Int @requires(resource: ME, action: READ_OWN)
  endless: Int @requires(resource: ME, action: READ_OWN)
}`;
const server = await startServer(keys, { extensions: [{ typeDefs, resolvers }] });
writeSync(1, `${JSON.stringify({ url: server.url, secret })}\n`);
process.stdin.resume().once('end', async () => {
  await server.stop();
  await store.close();
});
