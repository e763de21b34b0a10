import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { digestSecret } from '../../../src/keys/secret/secret.ts';
import { KeysService } from '../../../src/keys/service/service.ts';
import { describeOn, describeOnEach } from '../../support/dialects.ts';
import { changeDirectly, readDirectly } from '../../support/direct.ts';
import { authenticate, openTestKeys, type TestKeys } from '../../support/keys.ts';
import { migratedStore } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

/** Waits until a store reports a revision other than this one. */
async function revisionOf({ store }: TestKeys, before?: number): Promise<number> {
  const revision = () => store.repository.revision();
  await until(() => revision() !== undefined && revision() !== before);
  return revision()!;
}

const create = ({ keys }: TestKeys, name = 'CI') => keys.create({ name, roles: ['GUEST'] }, OPERATOR);

describeOnEach('a key that is deleted while it is looked up', () => {
  it('is accepted that once at most, and not cached', async () => {
    const database = await migratedStore();
    const [here, other] = [await openTestKeys({ asServer: true, database }), await openTestKeys({ database })];
    const { key: secret, apiKey: key } = await create(other);
    const { repository } = here.store;
    const slow = {
      ...repository,
      findByDigest: async (digest: string) => {
        const found = await repository.findByDigest(digest);
        const before = repository.revision();
        if (found) {
          await other.keys.delete([key.id], OPERATOR);
          await revisionOf(here, before);
        }
        return found;
      },
    };
    const keys = new KeysService({ ...here.options, repository: slow });
    await revisionOf(here);
    assert.ok('principal' in (await authenticate(keys, secret)));
    assert.equal(keys.authenticator.findVerified(digestSecret(secret)), undefined);
    assert.ok('refused' in (await authenticate(keys, secret)));
    await here.store.close();
    await other.store.close();
  });
});

describeOn('postgres', 'a store that listens', () => {
  let database: string;
  let here: TestKeys;
  let other: TestKeys;
  beforeEach(async () => {
    const url = new URL(await migratedStore());
    url.searchParams.set('application_name', url.searchParams.get('schema')!);
    database = url.href;
    [here, other] = [await openTestKeys({ asServer: true, database }), await openTestKeys({ database })];
  });
  afterEach(async () => {
    await here.store.close();
    await other.store.close();
  });

  /** When the listening store last checked its database. */
  async function lastQuestion(): Promise<unknown> {
    const name = new URL(database).searchParams.get('application_name');
    let row: Record<string, unknown> | undefined;
    // While it reconnects, no connection is listed.
    await until(async () => {
      [row] = await readDirectly(
        database,
        `select query_start::text from pg_stat_activity where application_name = '${name}' and query ~ '^(with gone|update followers)'`,
      );
      return row !== undefined;
    });
    return row!['query_start'];
  }

  /** Uses a key until it is cached. */
  async function remember(secret: string): Promise<void> {
    await until(async () => {
      assert.ok('principal' in (await authenticate(here.keys, secret)));
      return here.keys.authenticator.findVerified(digestSecret(secret)) !== undefined;
    });
  }

  it('remembers a key without asking again, and forgets it at a change that another one makes', async () => {
    const { key: secret, apiKey: key } = await create(other);
    await remember(secret);
    const before = await revisionOf(here);
    await other.keys.setEnabled(key.id, false, OPERATOR);
    await revisionOf(here, before);
    assert.equal(here.keys.authenticator.findVerified(digestSecret(secret)), undefined);
  });

  it('forgets a key at its own change before that is reported', async () => {
    const { key: secret, apiKey: key } = await create(other);
    await remember(secret);
    await here.keys.delete([key.id], OPERATOR);
    assert.equal(here.keys.authenticator.findVerified(digestSecret(secret)), undefined);
  });

  it('remembers a key while only its uses are counted, by itself and by another one', async () => {
    const { key: secret, apiKey: key } = await create(other);
    const usesOf = async () => (await here.keys.useOf([key.id])).get(key.id)!.uses;
    await remember(secret);
    await here.keys.finishActivity();
    const before = await usesOf();
    assert.ok('principal' in (await authenticate(other.keys, secret)));
    await other.keys.finishActivity();
    await changeDirectly(database, 'update key_uses set uses = uses + 1');
    assert.equal(await usesOf(), before + 2);
    await revisionOf(here);
    assert.ok(here.keys.authenticator.findVerified(digestSecret(secret)));
  });

  it('forgets a key at a change by hand, which only the notification tells', async () => {
    const { key: secret } = await create(other);
    await remember(secret);
    const before = await revisionOf(here);
    await changeDirectly(database, 'delete from api_keys');
    await revisionOf(here, before);
    assert.ok('refused' in (await authenticate(here.keys, secret)));
  });

  it('is not notified of stores in other schemas', async () => {
    const foreign = await openTestKeys({ asServer: true });
    const before = await revisionOf(here);
    await create(foreign);
    await foreign.store.close();
    // At its second check, it has received everything sent before the first.
    for (let count = 0; count < 2; count += 1) {
      const last = await lastQuestion();
      await until(async () => (await lastQuestion()) !== last);
    }
    assert.equal(await revisionOf(here), before);
  });

  it('remembers a key while others are created, changed and deleted, announced and seen by asking', async () => {
    const { key: secret } = await create(other);
    await remember(secret);
    const before = await revisionOf(here);
    const temporary = await create(other, 'Temporary');
    await other.keys.setEnabled(temporary.apiKey.id, false, OPERATOR);
    await other.keys.delete([temporary.apiKey.id], OPERATOR);
    await revisionOf(here, before);
    for (let count = 0; count < 3; count += 1) {
      const last = await lastQuestion();
      await until(async () => (await lastQuestion()) !== last);
    }
    assert.ok(here.keys.authenticator.findVerified(digestSecret(secret)));
  });

  it('forgets all keys at a change without a key: an emptied table', async () => {
    const { key: secret } = await create(other);
    await remember(secret);
    await changeDirectly(database, 'truncate api_keys cascade');
    await until(() => here.keys.authenticator.findVerified(digestSecret(secret)) === undefined);
  });

  it('forgets each key of a change that takes several notifications: one has room for few names', async () => {
    const first = await create(other, 'First');
    await changeDirectly(
      database,
      `insert into api_keys (id, name, roles, permissions, public_id, digest, created_at)
        select gen_random_uuid(), 'Key ' || n, '[]', '[]', 'p' || n, 'd' || n, 0 from generate_series(1, 250) as n`,
    );
    const last = await create(other, 'Last');
    for (const { key: secret } of [first, last]) await remember(secret);
    await changeDirectly(database, 'delete from api_keys');
    for (const { key: secret } of [first, last])
      await until(() => here.keys.authenticator.findVerified(digestSecret(secret)) === undefined);
  });

  it('forgets all keys at an unreadable notification, which anyone with a connection can send', async () => {
    for (const payload of ['[]', '5', '{}'])
      await changeDirectly(database, `select pg_notify('svc_api_changed_keys', '${payload}')`);
    const noId = "json_build_object('schema', current_schema(), 'keys', json_build_array('x'))::text";
    for (const payload of ["''", "'x'", "'null'", noId]) {
      const before = await revisionOf(here);
      await changeDirectly(database, `select pg_notify('svc_api_changed_keys', ${payload})`);
      assert.notEqual(await revisionOf(here, before), before);
      assert.equal(here.store.repository.keysChangedSince(before), 'any');
    }
  });

  it('finds a change that was not announced, by asking', async () => {
    await changeDirectly(
      database,
      'drop trigger api_keys_update_announced on api_keys',
      'drop trigger api_keys_delete_announced on api_keys',
    );
    const { key: secret, apiKey: key } = await create(other);
    await remember(secret);
    const another = await create(other, 'Another');
    await remember(another.key);
    const before = await revisionOf(here);
    await other.keys.delete([key.id], OPERATOR);
    await revisionOf(here, before);
    assert.ok('refused' in (await authenticate(here.keys, secret)));
    assert.ok(here.keys.authenticator.findVerified(digestSecret(another.key)));
  });

  it('trusts nothing that it remembers from the moment its connection ends, and listens again', async () => {
    const { key: secret, apiKey: key } = await create(other);
    await remember(secret);
    const name = new URL(database).searchParams.get('application_name');
    await changeDirectly(
      database,
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = '${name}' and pid <> pg_backend_pid()`,
      `delete from api_keys where id = '${key.id}'`,
    );
    await until(() => here.store.repository.revision() === undefined);
    assert.equal(here.keys.authenticator.findVerified(digestSecret(secret)), undefined);
    assert.ok('refused' in (await authenticate(here.keys, secret)));
    await remember((await create(other, 'Next')).key);
  });
});
