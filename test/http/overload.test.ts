import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { SchemaExtension } from '../../src/graphql/extension.ts';
import { listen, type RunningServer } from '../../src/http/listen.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createApp } from '../../src/service/create-app.ts';
import { openTestKeys, type TestKeys } from '../support/keys.ts';
import { rawPost, type RawReply, sendRaw } from '../support/raw-http.ts';
import { until } from '../support/until.ts';

/** How many large requests run at a time. */
const RUNNING = 16;

describe('a server with more large requests than it can carry out', () => {
  let test: TestKeys;
  let server: RunningServer;
  let [secret, other, otherId] = ['', '', ''];
  /** How many have started, and functions that end each. */
  let begun = 0;
  let ends: (() => void)[] = [];
  const extension: SchemaExtension = {
    typeDefs: `
      extend type Query {
        heavy: String @cost(weight: 5000) @requires(resource: THING, action: READ_ANY)
        light: String @requires(resource: THING, action: READ_ANY)
      }`,
    resources: ['THING'],
    resolvers: {
      Query: {
        heavy: async () => {
          begun += 1;
          await new Promise<void>((resolve) => void ends.push(resolve));
          return 'heavy';
        },
        light: () => 'light',
      },
    },
  };
  const create = (name: string) => test.keys.create({ name, permissions: ['THING:READ_ANY'] }, OPERATOR);
  const start = async (waitMs?: number) => {
    const app = await createApp({ keys: test.keys, extensions: [extension], ...(waitMs && { limits: { waitMs } }) });
    server = await listen({ app, host: '127.0.0.1', port: 0 });
  };
  beforeEach(async () => {
    [begun, ends] = [0, []];
    test = await openTestKeys({ resources: ['THING'] });
    secret = (await create('One')).key;
    ({
      key: other,
      apiKey: { id: otherId },
    } = await create('Other'));
  });
  afterEach(async () => {
    await server.stop(0);
    await test.store.close();
  });

  const post = (field: string, key: string) =>
    rawPost(
      [`Authorization: Bearer ${key}`, 'Content-Type: application/json'],
      JSON.stringify({ query: `{ ${field} }` }),
    );
  const send = (field: string, key = secret): Promise<RawReply> => sendRaw(server.url, post(field, key));
  const fill = async () => {
    const replies = Array.from({ length: RUNNING }, () => send('heavy'));
    await until(() => begun === RUNNING);
    return replies;
  };

  it('carries the others out later, and small ones meanwhile', async () => {
    await start();
    const replies = await fill();
    replies.push(send('heavy'), send('heavy'));
    for (let times = 0; times < 3; times += 1) assert.match((await send('light')).body, /"light":"light"/);
    assert.equal(begun, RUNNING);
    for (let count = 0; count < RUNNING + 2; count += 1) {
      await until(() => ends.length > 0);
      ends.shift()!();
    }
    for (const reply of replies) assert.match((await reply).body, /"heavy":"heavy"/);
  });

  it('answers 503 where one has waited too long, in the form of all errors, and has not begun it', async () => {
    await start(1);
    void (await fill());
    const { status, headers, body } = await send('heavy', other);
    assert.deepEqual([status, headers.get('retry-after')], [503, '5']);
    assert.deepEqual(JSON.parse(body), {
      errors: [
        {
          message: 'Too many large requests are waiting. Try again in 5 seconds, or ask for less.',
          extensions: { code: 'OVERLOADED' },
        },
      ],
    });
    assert.equal(begun, RUNNING);
    for (const end of ends) end();
  });

  it('refuses one whose key was disabled while it waited', async () => {
    await start();
    void (await fill());
    const waiting = send('heavy', other);
    for (let times = 0; times < 3; times += 1) await send('light');
    await test.keys.setEnabled(otherId, false, OPERATOR);
    for (const end of ends.splice(0)) end();
    assert.equal((await waiting).status, 401);
    assert.equal(begun, RUNNING);
  });

  it('begins a request of a connection once the one that was sent before it is answered', async () => {
    await start();
    const { hostname, port } = new URL(server.url);
    const socket = connect({ port: Number(port), host: hostname });
    await once(socket, 'connect');
    let received = '';
    socket.setEncoding('utf8').on('data', (text: string) => (received += text));
    socket.write(Buffer.concat([post('heavy', secret), post('heavy', secret), post('light', secret)]));
    for (const count of [1, 2]) {
      await until(() => begun === count);
      // Work that starts too early would do so before this answer.
      await send('light');
      assert.deepEqual([begun, ends.length], [count, 1]);
      ends.shift()!();
    }
    await until(() => received.includes('light'));
    assert.deepEqual(received.match(/"(?:heavy|light)":/g), ['"heavy":', '"heavy":', '"light":']);
    socket.destroy();
  });

  it('reads no more of a client that sends without end and reads nothing', async () => {
    await start();
    const { hostname, port } = new URL(server.url);
    const socket = connect({ port: Number(port), host: hostname }).on('error', () => {});
    await once(socket, 'connect');
    socket.pause();
    const piece = Buffer.concat(Array.from({ length: 5000 }, () => post('heavy', secret)));
    // The system buffers some megabytes. What the server still reads, it reads before it answers others.
    let last = -1;
    while (last !== socket.writableLength || last === 0) {
      last = socket.writableLength;
      assert.ok(socket.bytesWritten < 200_000_000);
      if (last === 0) socket.write(piece);
      for (let times = 0; times < 3; times += 1) await send('light');
    }
    assert.equal(begun, 1);
    socket.destroy();
  });
});
