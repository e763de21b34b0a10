import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { openKeys } from '../../../src/service/open-keys.ts';
import { testCli } from '../../support/cli.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { shrunkenStore } from '../../support/shrunken-store.ts';

describeOnEach('doctor --fix', (dialect) => {
  it('reports the freed space, while others use the store', async () => {
    const database = await shrunkenStore();
    const keys = await openKeys({ database });
    const { code, stdout, stderr } = await testCli(database).run(['doctor', '--fix', '--json']);
    assert.equal(code, 0, stderr);
    const { freedBytes } = JSON.parse(stdout) as { freedBytes: number | null };
    if (dialect === 'sqlite') assert.ok(freedBytes! > 100_000, `${freedBytes}`);
    else assert.equal(freedBytes, null);
    await keys.create({ name: 'A', roles: ['GUEST'] }, OPERATOR);
    await keys.close();
    const again = await testCli(database).run(['doctor', '--fix']);
    const text = dialect === 'sqlite' ? /^Returned \d+ bytes of /m : /^Vacuumed the tables of postgres:/m;
    assert.match(again.stdout, text);
    const missing = await testCli().run(['doctor', '--fix']);
    assert.equal(missing.code, 1);
  });
});
