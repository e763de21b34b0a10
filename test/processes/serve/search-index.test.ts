import assert from 'node:assert/strict';
import { once } from 'node:events';
import { changeDirectly } from '../../support/direct.ts';
import { describeOn } from '../../support/dialects.ts';
import { finished, startCli } from '../../support/process.ts';
import { migratedStore } from '../../support/temp.ts';

describeOn('postgres', 'serve', () => {
  async function messagesOf(database: string): Promise<string[]> {
    const child = startCli(['serve', '--port', '0'], { env: { SVC_API_DATABASE: database } });
    const ended = finished(child);
    await once(child.stdout!, 'data');
    child.kill('SIGTERM');
    return (await ended).stderr
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { msg: string }).msg);
  }

  it('says once that searches have no index, and what to do, and nothing where they have it', async () => {
    const database = await migratedStore();
    const isHint = (message: string) => /read all keys.*pg_trgm.*docs\/postgresql\.md/.test(message);
    assert.deepEqual((await messagesOf(database)).filter(isHint), []);
    await changeDirectly(database, 'drop index api_keys_by_search_text');
    assert.equal((await messagesOf(database)).filter(isHint).length, 1);
  });
});
