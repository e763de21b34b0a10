import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { type Migration, newestSchema } from '../../../src/store/migrations.ts';
import { backUpStore } from '../../../src/features/backup/back-up-store.ts';
import { restoreStore } from '../../../src/features/backup/restore-store.ts';
import { openConnection, openStore } from '../../../src/store/open.ts';
import { testCli } from '../../support/cli.ts';
import { describeAlwaysOnEach } from '../../support/dialects.ts';
import { changeDirectly, contentOf } from '../../support/direct.ts';
import { STORES } from '../../support/features.ts';
import { authenticate, createPrincipal, openTestKeys } from '../../support/keys.ts';
import { schemaOf, setSchema, withNextSchema } from '../../support/next-schema.ts';
import { tempFolder, tempStore } from '../../support/temp.ts';

const addTeam: Migration = async (db) => void (await sql`alter table api_keys add column team text`.execute(db));

describeAlwaysOnEach('a backup', () => {
  it('is not made of a store of a version that was never released', async () => {
    const cli = testCli();
    await cli.given('A');
    await setSchema(cli.database, 27);
    const before = await contentOf(cli.database);
    const { code, stdout } = await cli.run(['backup', join(tempFolder(), 'backup.sqlite'), '--json']);
    assert.deepEqual([code, (JSON.parse(stdout) as { code: string }).code], [1, 'STORE_OLDER']);
    assert.equal(await contentOf(cli.database), before);
  });

  it('gives its content to a newer version, but not its schema', async () => {
    const database = tempStore();
    const { keys, store } = await openTestKeys({ database });
    const { secret } = await createPrincipal(keys, { name: 'Kept', roles: ['ADMIN'] });
    await store.close();
    const backup = join(tempFolder(), 'backup.sqlite');
    const from = await openConnection({ database, features: STORES });
    await backUpStore(from, backup, { overwrite: false, auditKey: undefined });
    await from.close();
    await changeDirectly(backup, 'create trigger acts after update on api_keys begin delete from api_keys; end');
    const to = tempStore();
    await withNextSchema(addTeam, async () => {
      const { differences } = await restoreStore({
        backup,
        database: to,
        env: process.env,
        busyTimeoutMs: 0,
        listeners: [],
        features: STORES,
        bringBack: [],
        isBlind: true,
        agree: async () => true,
      });
      assert.deepEqual(differences, [{ type: 'trigger', name: 'acts', difference: 'extra' }]);
      const restored = await openTestKeys({ database: to });
      assert.ok('principal' in (await authenticate(restored.keys, secret)));
      await restored.store.close();
      const opened = await openStore({ database: to }, { features: STORES });
      assert.deepEqual(await opened.schemaDifferences(), []);
      await opened.close();
    });
    assert.equal(await schemaOf(to), newestSchema() + 1);
    assert.equal(existsSync(`${backup}-wal`), false);
  });
});

describe('a backup of a version that was never released', () => {
  it('is refused with what to do', async () => {
    const cli = testCli();
    await cli.given('A');
    const backup = join(tempFolder(), 'backup.sqlite');
    assert.equal((await cli.run(['backup', backup])).code, 0);
    await setSchema(backup, 27);
    for (const more of [[], ['--force']]) {
      const { code, stdout } = await cli.run(['restore', backup, '--yes', '--json', ...more]);
      const { code: name, error: message } = JSON.parse(stdout) as Record<string, string>;
      assert.deepEqual([code, name], [1, 'STORE_OLDER']);
      assert.ok(
        message!.startsWith(`The key store ${backup} was made by a version of svc-api that was never released`),
      );
      assert.match(
        message!,
        /Run "svc-api apikey export --with-digests" with that version, and "svc-api apikey import" with/,
      );
    }
  });
});
