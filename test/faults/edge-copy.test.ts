import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { HttpFeed, openEdgeStore } from '../../src/edge/index.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { mountSmallDisk, type SmallDisk } from '../support/full-disk.ts';
import { collectingLog } from '../support/log.ts';
import { startTestService, type TestService } from '../support/server.ts';
import { skipUnlessCI } from '../support/skip.ts';
import { until } from '../support/until.ts';

describe('an edge whose copy is on a full disk', () => {
  let test: TestService;
  let disk: SmallDisk;
  let token: string;
  const { log, lines } = collectingLog();
  const count = (message: string) => lines.filter((line) => line.message === message).length;
  const open = () => {
    const feed = new HttpFeed({ origin: test.url, token, leaseMs: 1000, log });
    return openEdgeStore(feed, { graceMs: 60_000, copyFile: join(disk.folder, 'keys'), log });
  };

  beforeEach(async function () {
    const mounted = mountSmallDisk(1);
    if (!mounted) skipUnlessCI(this, 'a small disk could not be mounted');
    disk = mounted;
    test = await startTestService();
    test.time.now = Date.now();
    ({ key: token } = await test.keys.create({ name: 'Edge', permissions: ['EDGE:READ_ANY'] }, OPERATOR));
  });

  afterEach(async () => {
    disk?.unmount();
    await test?.stop();
    lines.length = 0;
  });

  it('goes on without one, and says so', async () => {
    disk.fill();
    const edge = await open();
    await until(() => count('the copy of the keys cannot be written') === 1);
    assert.ok(edge.state().leaseSeconds > 0);
    await edge.close();
    assert.deepEqual(readdirSync(disk.folder), ['filler']);
  });

  it('removes one that lacks a change', async () => {
    const edge = await open();
    await until(() => count('the copy of the keys was written') === 1);
    disk.fill();
    for (let index = 0; count('the copy of the keys cannot be written') === 0; index += 1) {
      // As long as there is room for it in a block.
      const description = crypto.getRandomValues(Buffer.alloc(300)).toString('hex');
      await test.keys.create({ name: `Key ${index}`, roles: ['VIEWER'], description }, OPERATOR);
    }
    await until(() => !existsSync(join(disk.folder, 'keys')));
    assert.ok(edge.state().leaseSeconds > 0);
    await edge.close();
  });
});
