import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { testCli } from '../support/cli.ts';
import { destinationOf, testCourier } from '../support/couriers.ts';
import { openTestKeys, type TestKeys } from '../support/keys.ts';
import { blockWith } from '../support/pages.ts';
import { freePort } from '../support/port.ts';
import { cleanEnv, finished, ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';
import { type Received, newNoticeSecret, Receiver, stopReceivers } from '../support/webhook.ts';

const PAGE = 'docs/notices.md';

describe('a receiver of docs/notices.md', () => {
  let test: TestKeys;
  /** Delivers a notice to a receiver. @returns the dispatcher's log */
  const tell = async (receiver: Pick<Receiver, 'url' | 'secret'>) => {
    const server = testCourier(test, destinationOf(receiver as Receiver));
    await server.run();
    await test.keys.create({ name: 'CI', roles: ['VIEWER'] }, OPERATOR);
    test.time.now += 1000;
    await server.run();
    await server.dispatcher.stop();
    return server.log;
  };

  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(async () => {
    await test.store.close();
    await stopReceivers();
  });

  it('in JavaScript takes a notice, also a test notice, and refuses one that is signed with another secret', async () => {
    const [folder, port, secret] = [tempFolder(), await freePort(), newNoticeSecret()];
    const code = blockWith('standardwebhooks', PAGE, 'js');
    assert.ok(code.includes("listen(9000, '127.0.0.1')"));
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(join(ROOT, 'node_modules/standardwebhooks'), join(folder, 'node_modules/standardwebhooks'));
    // The documented port can be taken on this machine.
    writeFileSync(join(folder, 'receiver.mjs'), code.replace('9000', String(port)));
    const child = spawn(process.execPath, ['receiver.mjs'], {
      cwd: folder,
      env: cleanEnv({ SVC_API_NOTICES_SECRET: secret }),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const url = `http://127.0.0.1:${port}/`;
      while (!(await fetch(url).catch(() => undefined))) await delay(20);
      const line = once(createInterface(child.stdout), 'line');
      assert.deepEqual(await tell({ url, secret }), []);
      assert.match(String(await line), /^msg_[0-9a-f]{32} key\.created CI$/);
      const config = join(folder, 'svc-api.yaml');
      writeFileSync(config, `notices: { url: "${url}" }\n`);
      const [, ...command] = blockWith('notices test', PAGE, 'sh').trim().split(' ');
      const tried = once(createInterface(child.stdout), 'line');
      const env = { SVC_API_CONFIG: config, SVC_API_NOTICES_SECRET: secret };
      const { code: exit, stderr } = await testCli().run(command, { env });
      assert.deepEqual([exit, stderr], [0, '']);
      assert.match(String(await tried), /^msg_[0-9a-f]{32} test /);
      await test.store.close();
      test = await openTestKeys();
      const log = await tell({ url, secret: newNoticeSecret() });
      assert.equal(log.at(-1)!.fields['reason'], 'the answer was 401');
    } finally {
      child.kill();
      await once(child, 'exit');
    }
  });

  it('in Python accepts a notice, but not a changed or old one, or one with another secret', async () => {
    const receiver = await Receiver.start(`${newNoticeSecret()} ${newNoticeSecret()}`);
    const [secret, other] = receiver.secret.split(' ') as [string, string];
    receiver.secret = secret;
    await tell({ url: receiver.url, secret: `${other} ${secret}` });
    const [{ body, headers }] = receiver.received as [Received];
    const verify = async (each: { body?: string; secret?: string; sentAt?: string }) => {
      const given = { ...headers, ...(each.sentAt !== undefined && { 'webhook-timestamp': each.sentAt }) };
      const program = [
        blockWith('def verify', PAGE, 'python'),
        'import sys',
        'given = json.load(sys.stdin)',
        'print(verify(given["body"].encode(), given["headers"], given["secret"])["data"]["name"])',
      ].join('\n');
      const child = spawn('python3', ['-c', program], { env: cleanEnv({ PATH: process.env['PATH'] }) });
      child.stdin.end(JSON.stringify({ body, secret, headers: given, ...each }));
      const { stdout, stderr } = await finished(child);
      return stdout || stderr.trim().split('\n').at(-1);
    };
    const refused = 'ValueError: not signed by svc-api';
    assert.deepEqual(
      await Promise.all([
        verify({}),
        verify({ secret: other }),
        verify({ body: body.replace('CI', 'CD') }),
        verify({ secret: newNoticeSecret() }),
        verify({ sentAt: String(Math.floor(Date.now() / 1000) - 301) }),
      ]),
      ['CI\n', 'CI\n', refused, refused, refused],
    );
  });
});
