import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { blockWith, runBlock } from '../support/pages.ts';
import { startTestService } from '../support/server.ts';
import { needsPrograms } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';

describe('docs/http.md', () => {
  it('shows how to introspect a key, and an answer with the same fields', async function () {
    needsPrograms(this, 'curl');
    const test = await startTestService();
    const gateway = await test.keys.create({ name: 'Gateway', permissions: ['API_KEY:READ_ANY'] }, OPERATOR);
    const fields = { name: 'CI deploy', permissions: ['DOCKER:READ_ANY'], expiresIn: '24h' };
    const { key: secret } = await test.keys.create(fields, OPERATOR);
    const folder = tempFolder();
    writeFileSync(join(folder, 'gateway.txt'), `Authorization: Bearer ${gateway.key}\n`);
    const block = blockWith('/introspect', 'docs/http.md').replace('http://127.0.0.1:4000', test.url);
    const { stdout, stderr } = await runBlock(block, folder, { API_KEY: secret, no_proxy: '*' });
    await test.stop();
    assert.equal(stderr, '');
    const shown = JSON.parse(blockWith('"active"', 'docs/http.md', 'json')) as object;
    const answer = JSON.parse(stdout) as { exp: number; iat: number };
    assert.deepEqual(Object.keys(answer), Object.keys(shown));
    assert.equal(answer.exp - answer.iat, 86_400);
  });
});
