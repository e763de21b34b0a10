import assert from 'node:assert/strict';
import { Leaks } from '../../src/features/leaks/leaks.ts';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { testApply } from '../support/apply.ts';
import { type TestCli, testCli } from '../support/cli.ts';
import { APP, codeFor, exchange, newPkce } from '../features/consent/support/consent.ts';
import { visitorWith } from '../features/console/support/console.ts';
import { destinationOf, testCourier } from '../support/couriers.ts';
import { failDelivery } from '../support/delivery.ts';
import { describeOnEach } from '../support/dialects.ts';
import { execArgs } from '../support/exec.ts';
import { createPrincipal, openTestKeys } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';
import { tempFolder, tempStore } from '../support/temp.ts';
import { Receiver, stopReceivers } from '../support/webhook.ts';

describeOnEach('a webhook gets changes at every door:', () => {
  let receiver: Receiver;
  /** Sends what a server sends right after its start, and returns types, actions and names. */
  const look = async (database: string): Promise<string[]> => {
    const before = receiver.received.length;
    const test = await openTestKeys({ database });
    const server = testCourier(test, destinationOf(receiver));
    await server.run();
    await server.dispatcher.stop();
    await test.store.close();
    const named = receiver.received.slice(before).map(({ type, data }) => [type, data['action'], data['name']]);
    // Four are sent at a time, so the order varies.
    return named.map((each) => each.join(' ')).toSorted();
  };
  const succeed = async (cli: TestCli, ...args: string[]) => {
    const { code, stdout, stderr } = await cli.run(args);
    assert.equal(code, 0, stdout + stderr);
  };

  beforeEach(async () => {
    receiver = await Receiver.start();
  });
  afterEach(stopReceivers);

  describe('commands', () => {
    it('apply, and apply --prune', async () => {
      const applying = testApply();
      const { cli } = applying;
      await cli.given('Here');
      await look(cli.database);
      applying.declare('keys:\n  - { name: Declared, roles: [VIEWER] }\n');
      assert.equal((await applying.json()).code, 0);
      assert.deepEqual(await look(cli.database), ['key.created CREATE Declared']);
      applying.declare('keys: []\n');
      assert.equal((await applying.json('--prune')).code, 0);
      assert.deepEqual(await look(cli.database), ['key.deleted DELETE Declared']);
    });

    it('exec: its key, and its end', async () => {
      const cli = testCli();
      await cli.given('Here');
      await look(cli.database);
      await succeed(cli, ...execArgs(['true'], ['--name', 'Report']));
      assert.deepEqual(await look(cli.database), ['key.created CREATE Report', 'key.deleted DELETE Report']);
    });

    it('import', async () => {
      const cli = testCli();
      await cli.given('Here');
      await look(cli.database);
      const file = join(tempFolder(), 'keys.jsonl');
      writeFileSync(file, JSON.stringify({ name: 'Imported', roles: ['VIEWER'], sha256: 'ab'.repeat(32) }));
      await succeed(cli, 'apikey', 'import', file);
      assert.deepEqual(await look(cli.database), ['key.created IMPORT Imported']);
    });

    it('restore: a key that comes back, and one that is no more; nothing again', async () => {
      const cli = testCli();
      await cli.given('Deleted');
      await look(cli.database);
      const backup = join(tempFolder(), 'backup.sqlite');
      await cli.given('Waiting');
      await succeed(cli, 'backup', backup);
      await succeed(cli, 'apikey', '--delete', '--name', 'Deleted', '--json');
      await cli.given('Newer');
      assert.deepEqual(await look(cli.database), [
        'key.created CREATE Newer',
        'key.created CREATE Waiting',
        'key.deleted DELETE Deleted',
      ]);
      await succeed(cli, 'restore', backup, '--yes', '--restore-revoked', 'Deleted');
      assert.deepEqual(await look(cli.database), ['key.created RESTORE Deleted', 'key.deleted DELETE Newer']);
    });

    it('restore --force: what waited in the backup, again under the same id', async () => {
      const cli = testCli();
      await cli.given('Here');
      await look(cli.database);
      const backup = join(tempFolder(), 'backup.sqlite');
      await cli.given('Waiting');
      await succeed(cli, 'backup', backup);
      assert.deepEqual(await look(cli.database), ['key.created CREATE Waiting']);
      const other = testCli();
      await succeed(other, 'restore', backup, '--yes', '--force');
      assert.deepEqual(await look(other.database), ['key.created CREATE Waiting']);
      assert.equal(new Set(receiver.received.map(({ id }) => id)).size, 1);
    });

    it('copy: what was not told yet, by the servers of both, under the same ids', async () => {
      const cli = testCli();
      await cli.given('Here');
      await look(cli.database);
      await cli.given('Meanwhile');
      const to = tempStore();
      await succeed(cli, 'apikey', 'export', '--to', to);
      assert.deepEqual(await look(to), ['key.created CREATE Meanwhile']);
      assert.deepEqual(await look(cli.database), ['key.created CREATE Meanwhile']);
      assert.equal(new Set(receiver.received.map((each) => each.id + each.body)).size, 1);
    });

    it('scan, also without --revoke: once a day', async () => {
      const cli = testCli();
      const { key } = await cli.given('Leaky');
      await look(cli.database);
      const file = join(tempFolder(), 'log.txt');
      writeFileSync(file, `it is ${key}\n`);
      for (const expected of [['key.leaked LEAK Leaky'], []]) {
        assert.equal((await cli.run(['apikey', 'scan', file])).code, 3);
        assert.deepEqual(await look(cli.database), expected);
      }
      assert.match(receiver.received[0]!.body, /"place":"[^"]*log\.txt:1:7"/);
      assert.equal(receiver.received[0]!.body.includes(key), false);
    });
  });

  describe('a server', () => {
    let test: TestService;
    beforeEach(async () => {
      test = await startTestService({ consent: 'both', app: { console: true, clients: [APP] } });
    });
    afterEach(() => test.stop());

    it('GraphQL, which has leaks in its audit log as well', async () => {
      const { secret } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
      await look(test.database);
      const create = `mutation { createApiKey(input: { name: "Asked", roles: [VIEWER] }) { apiKey { id } } }`;
      const { body } = await query(test.url, secret, create);
      const { apiKey } = body.data!['createApiKey'] as { apiKey: { id: string } };
      const { publicId } = (await test.keys.findByName('Asked', OPERATOR))!;
      await test.keys.feature(Leaks).note({ id: apiKey.id, publicId, place: 'a:1:1' });
      const log = await query(test.url, secret, '{ auditLog(first: 1, action: LEAK) { edges { node { action } } } }');
      assert.deepEqual(log.body.data, { auditLog: { edges: [{ node: { action: 'LEAK' } }] } });
      await query(test.url, secret, `mutation { deleteApiKeys(ids: ["${apiKey.id}"]) { deleted } }`);
      assert.deepEqual(await look(test.database), [
        'key.created CREATE Asked',
        'key.deleted DELETE Asked',
        'key.leaked LEAK Asked',
      ]);
    });

    it('the console, whose audit log shows leaks', async () => {
      const { visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] });
      await look(test.database);
      await visitor.open('keys/new');
      await visitor.submit('keys/new', { name: 'Made', permission: ['DOCKER:READ_ANY'], step: 'preview' });
      assert.equal((await visitor.submit('keys/new', { step: 'create' })).status, 200);
      const { id, publicId } = (await test.keys.findByName('Made', OPERATOR))!;
      await test.keys.feature(Leaks).note({ id, publicId, place: 'logs/app.txt:3:4' });
      const { text } = await visitor.open('audit-log?action=LEAK');
      assert.match(text, /found a leaked secret of Made .*logs\/app\.txt:3:4/);
      await visitor.open(`keys/${id}/delete`);
      await visitor.submit('/delete', { name: 'Made' });
      assert.deepEqual(await look(test.database), [
        'key.created CREATE Made',
        'key.deleted DELETE Made',
        'key.leaked LEAK Made',
      ]);
    });

    it('an application that gets its key, and whose code is shown again', async () => {
      const { secret } = await createPrincipal(test.keys, { name: 'Ada', roles: ['ADMIN'] });
      await look(test.database);
      const { verifier, challenge } = newPkce();
      const code = await codeFor(test.url, secret, { code_challenge: challenge });
      assert.equal((await exchange(test.url, code, verifier)).status, 200);
      const [created] = await look(test.database);
      assert.match(created!, /^key\.created CREATE Grafana sync/);
      test.time.now += 10_000;
      assert.equal((await exchange(test.url, code, verifier)).status, 400);
      const deleted = created!.replace('created CREATE', 'deleted DELETE');
      const reused = created!.replace('created CREATE', 'reused CONSENT_REPLAY');
      assert.deepEqual(await look(test.database), [deleted, reused]);
    });

    it('a secret that could not be delivered: the key is taken back, and those that it replaced come back', async () => {
      await test.keys.create({ name: 'CI', roles: ['VIEWER'] }, OPERATOR);
      await look(test.database);
      await failDelivery((delivery) => test.keys.create({ name: 'New', roles: ['VIEWER'] }, OPERATOR, delivery));
      assert.deepEqual(await look(test.database), ['key.created CREATE New', 'key.deleted DELETE New']);
      const fields = { name: 'CI', roles: ['ADMIN'], overwrite: true };
      await failDelivery((delivery) => test.keys.create(fields, OPERATOR, delivery));
      await look(test.database);
      const last = receiver.received
        .slice(-4)
        .toSorted((one, other) => Number(one.data['entry']) - Number(other.data['entry']));
      assert.deepEqual(
        last.map(({ type, data }) => [type, data['roles']]),
        [
          ['key.deleted', ['VIEWER']],
          ['key.created', ['ADMIN']],
          ['key.deleted', ['ADMIN']],
          ['key.created', ['VIEWER']],
        ],
      );
    });
  });
});
