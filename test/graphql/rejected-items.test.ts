import assert from 'node:assert/strict';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { query, startServer, type TestServer } from '../support/server.ts';

const typeDefs = `
  extend type Query {
    "The first cannot be there." strict: [Int!] @requires(resource: DISK, action: READ_ANY)
    "Takes several turns." many: [Disk] @requires(resource: DISK, action: READ_ANY)
  }
  type Disk { "What it takes long to find." size: Int }
`;
const failed = () => Promise.reject(new Error('no such disk'));
const busy = () => {
  for (const end = performance.now() + 0.2; performance.now() < end;);
  return 1;
};
const resolvers = {
  Query: {
    strict: () => [null, ...Array.from({ length: 3 }, failed)],
    many: () => [...Array.from({ length: 500 }, () => ({ size: busy })), ...Array.from({ length: 3 }, failed)],
  },
};

describe("rejected promises in a list that a host's resolver returns", () => {
  let test: TestKeys;
  let server: TestServer;
  let secret: string;
  /** Events that would end a process. */
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  before(async () => {
    process.on('unhandledRejection', note);
    test = await openTestKeys({ resources: ['DISK'] });
    server = await startServer(test.keys, { extensions: [{ typeDefs, resolvers, resources: ['DISK'] }] });
    ({ secret } = await createPrincipal(test.keys, { name: 'Disks', permissions: ['DISK:READ_ANY'] }));
  });
  after(async () => {
    process.off('unhandledRejection', note);
    await server.stop();
    await test.store.close();
  });

  for (const [name, why] of [
    ['strict', 'an item before them fails the list'],
    ['many', 'they are looked at in a later turn'],
  ] as const)
    it(`do not end the process where ${why}`, async () => {
      const text = name === 'many' ? '{ many { size } }' : '{ strict }';
      // Before and after the operation is prepared.
      for (const time of ['first', 'second', 'third']) {
        const { status, body } = await query(server.url, secret, text);
        await yieldToEventLoop();
        assert.equal(status, 200, time);
        assert.equal(body.errors?.length, name === 'many' ? 3 : 1, time);
        assert.deepEqual(unhandled, [], time);
      }
    });
});
