import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { openStore } from '../../src/store/open.ts';
import { testCli } from '../support/cli.ts';
import { noticesOf } from '../support/couriers.ts';
import { changeDirectly } from '../support/direct.ts';
import { STORES } from '../support/features.ts';
import { mountSmallDisk, type SmallDisk } from '../support/full-disk.ts';
import { type LastingPostgres, startLastingPostgres } from '../support/lasting-postgres.ts';
import { startCli } from '../support/process.ts';
import { skipUnlessCI } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';
import { Receiver, stopReceivers } from '../support/webhook.ts';

const KEYS = 12;
/** How many are sent at the same time. */
const UNDER_WAY = 4;
const UNWRITABLE = 'notices could not be collected or delivered';

describe('notices of a store that fails', () => {
  let receiver: Receiver;
  /** Responses that the test holds back. */
  let held: ServerResponse[];
  const cleanups: (() => unknown)[] = [];

  beforeEach(async () => {
    receiver = await Receiver.start();
    held = [];
  });
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
    await stopReceivers();
  });

  /** Starts a server that notifies the receiver, and collects its log. */
  const serve = async (database: string) => {
    const config = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(config, `notices: { url: "${receiver.url}" }\n`);
    const child = startCli(['serve', '--database', database, '--config', config, '--port', '0'], {
      env: { LOG_LEVEL: 'info', SVC_API_NOTICES_SECRET: receiver.secret },
    });
    const ended = once(child, 'exit') as Promise<[number | null]>;
    const lines: { level: number; msg: string; err?: { code?: string } }[] = [];
    createInterface({ input: child.stderr! }).on('line', (line) => lines.push(JSON.parse(line) as (typeof lines)[0]));
    child.stdout!.resume();
    const stop = async (signal: NodeJS.Signals = 'SIGTERM') => {
      child.kill(signal);
      return (await ended)[0];
    };
    cleanups.push(() => stop('SIGKILL'));
    await until(() => lines.some(({ msg }) => msg === 'listening'));
    const said = (text: string) => lines.find(({ msg }) => msg === text);
    return { said, stop };
  };
  const create = async (database: string, names: readonly string[]) => {
    for (const name of names) await testCli(database).given(name);
  };
  const names = (prefix: string) => Array.from({ length: KEYS }, (_, index) => `${prefix} ${index}`);
  const waiting = async (database: string) => {
    const store = await openStore({ database }, { features: STORES });
    return noticesOf({ store })
      .countWaiting()
      .finally(() => store.close());
  };
  const told = (type = 'key.created') => new Set(receiver.of(type).map(({ data }) => String(data['name'])));
  /** Creates keys whose notices wait, or whose deliveries are in progress. */
  const letWait = async (database: string) => {
    await create(database, ['Ready']);
    await receiver.waitFor(1);
    receiver.answer = (response) => void held.push(response);
    await create(database, names('Waiting'));
    await until(async () => held.length === UNDER_WAY && (await waiting(database)) === KEYS);
  };
  const takeAll = () => {
    receiver.answer = (response) => void response.writeHead(204).end();
    for (const response of held.splice(0)) response.writeHead(204).end();
  };
  /** Asserts that repeated notices are the same. */
  const assertSame = () => {
    const bodies = new Map(receiver.received.map(({ id, body }) => [id, body]));
    for (const { id, body } of receiver.received) assert.equal(body, bodies.get(id));
    assert.equal(receiver.forged, 0);
  };

  describe('since its disk is full', () => {
    let disk: SmallDisk;
    let database: string;
    beforeEach(async function () {
      const mounted = mountSmallDisk(8);
      if (!mounted) skipUnlessCI(this, 'a small disk could not be mounted');
      disk = mounted;
      cleanups.push(() => disk.unmount());
      database = join(disk.folder, 'keys.sqlite');
    });
    /** Also fills the free space inside the store's files. */
    const fill = async () => {
      disk.fill();
      for (let isFull = false; !isFull;)
        try {
          await changeDirectly(database, 'update notice_state set failure = hex(randomblob(2000))');
        } catch (error) {
          assert.match(String(error), /full/);
          isFull = true;
        }
    };
    /** Starts a server, and makes the store unwritable before it can record its deliveries. */
    const serveUntilUnwritable = async () => {
      const server = await serve(database);
      await letWait(database);
      await fill();
      takeAll();
      // Only notices that were already due are sent.
      await until(() => told().size > UNDER_WAY);
      await until(() => server.said(UNWRITABLE) !== undefined);
      return server;
    };

    it('come once, since deliveries are remembered until they can be written', async () => {
      const server = await serveUntilUnwritable();
      assert.deepEqual([server.said(UNWRITABLE)!.err?.code, await waiting(database)], ['STORE_FULL', KEYS]);
      // Removing access still works; its notice comes later.
      const { code, stderr } = await testCli(database).runProcess(['apikey', 'delete', 'Ready']);
      assert.equal(code, 0, stderr);
      disk.empty();
      await until(() => told('key.deleted').size === 1);
      await until(async () => (await waiting(database)) === 0);
      assert.notEqual(server.said('notices are collected again'), undefined);
      await create(database, ['Afterwards']);
      await until(() => told().has('Afterwards'));
      assert.equal(receiver.received.length, KEYS + 3);
      assertSame();
      assert.equal(await server.stop(), 0);
    });

    it('come again under the same ids, where the server was killed before there was room', async () => {
      const server = await serveUntilUnwritable();
      await server.stop('SIGKILL');
      const { length: before } = receiver.received;
      disk.empty();
      await changeDirectly(database, 'update notice_state set leased_until = 0');
      const next = await serve(database);
      await until(async () => (await waiting(database)) === 0);
      assert.equal(told().size, KEYS + 1);
      assert.equal(receiver.received.length, before + KEYS);
      assertSame();
      assert.equal(await next.stop(), 0);
    });
  });

  describe('since PostgreSQL is stopped', () => {
    let postgres: LastingPostgres;
    beforeEach(async () => {
      postgres = await startLastingPostgres();
      cleanups.push(() => postgres.end());
      await create(postgres.url, ['Before']);
    });

    it('come at least once, with those of keys created before the server reconnects', async () => {
      const server = await serve(postgres.address);
      await letWait(postgres.url);
      await postgres.stop();
      takeAll();
      await until(() => server.said(UNWRITABLE) !== undefined);
      assert.match(String(server.said(UNWRITABLE)!.err?.code), /^STORE_/);
      await postgres.start();
      assert.equal(await waiting(postgres.url), KEYS);
      await create(postgres.url, names('Meanwhile'));
      postgres.lead();
      await until(() => told().size === 2 * KEYS + 1);
      await until(async () => (await waiting(postgres.url)) === 0);
      assert.notEqual(server.said('notices are collected again'), undefined);
      assertSame();
      assert.equal(await server.stop(), 0);
    });
  });
});
