import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { KeptConnection } from '../support/keep-alive.ts';
import { openTestKeys } from '../support/keys.ts';
import { cleanEnv } from '../support/process.ts';
import { rawPost } from '../support/raw-http.ts';
import { startServe } from '../support/serve.ts';

const CHILD = fileURLToPath(new URL('../support/held-lock-child.ts', import.meta.url));
/** libuv polls again within the same turn of the event loop while 1,024 connections are ready. */
const READY = 6000;
const LATE = 500;
/** The limit of failed credentials refuses some. On a slow machine, silent connections also time out. */
const REFUSED: ReadonlySet<number> = new Set([401, 408, 429]);

const requestWith = (secret: string) =>
  rawPost([`Authorization: Bearer ${secret}`, 'Content-Type: application/json'], '{"query":"{ me { name } }"}');

describe('a request whose head arrives after a delete has returned', () => {
  let stop: (() => Promise<void>)[];
  beforeEach(() => (stop = []));
  afterEach(async () => {
    for (const end of stop) await end();
  });

  it(`is refused where ${READY} other sockets are ready`, async () => {
    const { keys, store, database } = await openTestKeys({ time: { now: Date.now() } });
    const { key: secret, apiKey: key } = await keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const server = await startServe(database);
    stop.push(
      () => server.stop('SIGKILL'),
      () => store.close(),
    );
    const request = requestWith(secret);
    const open: KeptConnection[] = [];
    // In groups, because the accept queue is short.
    while (open.length < READY + LATE)
      open.push(...(await Promise.all(Array.from({ length: 100 }, () => KeptConnection.open(server.url)))));
    // The server may already have closed the first ones.
    const asking = await KeptConnection.open(server.url);
    for (let count = 0; count < 3; count += 1) {
      asking.send(request);
      assert.equal(await asking.status(), 200);
    }
    const [early, late] = [open.slice(0, READY), open.slice(READY)];
    for (const connection of early) connection.send(request);
    await keys.delete([key.id], OPERATOR);
    for (const connection of late) connection.send(request);
    const statuses = await Promise.all(late.map((connection) => connection.status()));
    assert.deepEqual(
      statuses.filter((status) => !REFUSED.has(status)),
      [],
    );
    for (const connection of [asking, ...open]) connection.close();
  });

  it('is refused after the server has failed to write behind a held lock', async () => {
    const { keys, store, database } = await openTestKeys({ time: { now: Date.now() } });
    const child = spawn(process.execPath, [CHILD, database], { stdio: ['pipe', 'pipe', 'inherit'], env: cleanEnv() });
    stop.push(async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
      await store.close();
    });
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const connection = await KeptConnection.open(String((await lines.next()).value));
    for (let round = 0; round < 5; round += 1) {
      const { key: secret, apiKey: key } = await keys.create({ name: `Key ${round}`, roles: ['GUEST'] }, OPERATOR);
      for (let request = 0; request < 3; request += 1) {
        connection.send(requestWith(secret));
        assert.equal(await connection.status(), 200);
      }
      child.stdin.write('fail\n');
      assert.equal((await lines.next()).value, 'STORE_LOCKED');
      await keys.delete([key.id], OPERATOR);
      connection.send(requestWith(secret));
      assert.equal(await connection.status(), 401);
    }
    connection.close();
  });
});
