import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testCli } from '../support/cli.ts';
import { describeOnEach } from '../support/dialects.ts';
import { changeDirectly, readDirectly } from '../support/direct.ts';
import { startServe } from '../support/serve.ts';
import { tempFolder, tempStore } from '../support/temp.ts';
import { until } from '../support/until.ts';
import { newNoticeSecret, Receiver, stopReceivers } from '../support/webhook.ts';

const KEYS = 12;

describeOnEach('notices of servers that are killed', () => {
  let receiver: Receiver;
  let env: NodeJS.ProcessEnv;
  let config: string;
  let database: string;

  const serve = (...args: string[]) => startServe(database, ['--port', '0', '--config', config, ...args], env);
  const writeConfig = (url: string) => writeFileSync(config, `notices: { url: "${url}" }\n`);
  const told = (type: string) => new Set(receiver.of(type).map(({ data }) => data['name'])).size;
  const cli = () => testCli(database);
  /** Creates keys with a command, with or without a running server. */
  const create = async (names: readonly string[]) => {
    for (const name of names) await cli().given(name);
  };
  const names = (prefix: string) => Array.from({ length: KEYS }, (_, index) => `${prefix} ${index}`);

  beforeEach(async () => {
    database = tempStore();
    receiver = await Receiver.start();
    config = join(tempFolder(), 'svc-api.yaml');
    writeConfig(receiver.url);
    env = { SVC_API_NOTICES_SECRET: receiver.secret };
    await create(['Before']);
  });
  afterEach(stopReceivers);

  it('arrive at least once, whether they wait, are under way, or were taken and not written yet', async () => {
    let server = await serve();
    await create(['Ready']);
    await receiver.waitFor(1);
    // Killed while all deliveries are in progress.
    let arrived = 0;
    receiver.answer = () => void (arrived += 1);
    await create(names('Under way'));
    await until(() => arrived >= 4);
    await server.stop('SIGKILL');
    // Created while no server runs.
    await create(names('Meanwhile'));
    receiver.answer = (response) => void response.writeHead(204).end();
    server = await serve();
    // Killed while some are accepted, but not all.
    await until(() => told('key.created') > 6);
    await server.stop('SIGKILL');
    // The expiry of a lease was tested above, so this one is ended at once.
    await changeDirectly(database, 'update notice_state set leased_until = 0');
    server = await serve('--workers', '2');
    await until(() => told('key.created') === 2 * KEYS + 1);
    await server.stop();
    const ids = new Map(receiver.received.map(({ id, body }) => [id, body]));
    assert.equal(ids.size, 2 * KEYS + 1);
    for (const { id, body } of receiver.received) assert.equal(body, ids.get(id));
    assert.equal(receiver.forged, 0);
    assert.equal(
      receiver.received.some(({ data }) => data['name'] === 'Before'),
      false,
    );
  });

  it('come once of two servers with two workers each, and go on with the address of a changed file', async () => {
    const servers = [await serve('--workers', '2'), await serve('--workers', '2')];
    await create(['Ready']);
    await receiver.waitFor(1);
    await create(names('Two servers'));
    await until(() => told('key.created') === KEYS + 1);
    assert.equal(receiver.received.length, KEYS + 1);
    const other = await Receiver.start(receiver.secret);
    writeConfig(other.url);
    // Both servers check the file twice a second.
    await until(async () => {
      const before = other.received.length + receiver.received.length;
      await create([`Changed ${before}`]);
      await until(() => other.received.length + receiver.received.length > before);
      return other.received.length >= 3;
    });
    for (const server of servers) await server.stop();
  });

  it('keep no server from stopping', async () => {
    const server = await serve();
    await create(['Ready']);
    await receiver.waitFor(1);
    let arrived = 0;
    receiver.answer = () => void (arrived += 1);
    await create(['Unanswered']);
    await until(() => arrived === 1);
    await server.stop();
    // It did not wait for the attempt to fail, which would be counted.
    assert.deepEqual(await readDirectly(database, 'select attempts from notice_outbox'), [{ attempts: 0 }]);
  });

  it('keep a server from starting whose secret is missing or wrong', async () => {
    for (const [secret, code, status] of [
      ['', 'CONFIG_UNAVAILABLE', 1],
      [newNoticeSecret().slice(0, 20), 'CONFIG_INVALID', 2],
    ] as const) {
      const { code: exit, stderr } = await cli().run(['serve', '--port', '0', '--config', config], {
        env: { SVC_API_NOTICES_SECRET: secret },
      });
      assert.deepEqual([exit, stderr.includes(`Code: ${code}`)], [status, true], stderr);
      assert.equal(secret !== '' && stderr.includes(secret), false);
    }
  });
});
