import assert from 'node:assert/strict';
import { join } from 'node:path';
import { withKeys } from '../../src/cli/with-keys.ts';
import { Containments } from '../../src/features/contain/contain.ts';
import { Sessions } from '../../src/features/sessions/sessions.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import type { OpenKeys } from '../../src/service/open-keys.ts';
import { testCli } from '../support/cli.ts';
import { describeOnEach } from '../support/dialects.ts';
import { changeDirectly, readDirectly } from '../support/direct.ts';
import { createPrincipal, openTestKeys } from '../support/keys.ts';
import { tempFolder } from '../support/temp.ts';

describe('a backup', () => {
  it('has no temporary state, such as the sessions of people who may sign out', async () => {
    const [cli, path] = [testCli(), join(tempFolder(), 'backup.sqlite')];
    const { id } = await cli.given('A');
    await withKeys({ database: cli.database }, (keys) => keys.feature(Sessions).begin(id, 'digest'));
    await changeDirectly(
      cli.database,
      "insert into consent_requests values ('a', 'b', null, 'PENDING', 1, 2, '{}', '')",
    );
    assert.equal((await cli.run(['backup', path])).code, 0);
    for (const table of ['sessions', 'consent_requests'])
      assert.deepEqual(await readDirectly(path, `select * from ${table}`), [], table);
    assert.equal((await readDirectly(cli.database, 'select * from sessions')).length, 1);
  });
});

describeOnEach('restore', () => {
  it('brings back no session of a key that comes back', async () => {
    const [cli, backup] = [testCli(), join(tempFolder(), 'backup.sqlite')];
    const act = (work: (keys: OpenKeys) => Promise<unknown>) => withKeys({ database: cli.database }, work);
    const [{ id }, other] = [await cli.given('Same'), await cli.given('Other')];
    const tokens: string[] = [];
    await act(async (keys) => {
      for (let count = 0; count < 2; count += 1) tokens.push(await keys.feature(Sessions).begin(id, 'digest'));
      await keys.feature(Sessions).begin(other.id, 'digest');
    });
    await cli.run(['backup', backup]);
    await act((keys) => keys.delete([id], OPERATOR));
    const { code, stderr } = await cli.run(['restore', backup, '--restore-revoked', 'Same', '--yes']);
    assert.equal(code, 0, stderr);
    await act(async (keys) => {
      assert.ok(await keys.findByName('Same', OPERATOR));
      for (const token of tokens) assert.equal(await keys.feature(Sessions).find(token), undefined);
    });
    const left = await readDirectly(cli.database, 'select key_id from sessions');
    assert.equal(left.length, 1, 'nobody else is signed out');
  });
});

describe('the session of a key that another key enabled', () => {
  it('ends once that is undone', async () => {
    const { keys, store } = await openTestKeys();
    const { principal: ops } = await createPrincipal(keys, { name: 'Ops', roles: ['ADMIN'] });
    const { principal: old } = await createPrincipal(keys, { name: 'Old', roles: ['GUEST'] });
    await keys.setEnabled(old.apiKey.id, false, OPERATOR);
    await keys.setEnabled(old.apiKey.id, true, ops);
    const token = await keys.feature(Sessions).begin(old.apiKey.id, 'digest');
    await keys.feature(Containments).contain('Ops', undefined, OPERATOR);
    assert.equal(await keys.feature(Sessions).find(token), undefined);
    await store.close();
  });
});
