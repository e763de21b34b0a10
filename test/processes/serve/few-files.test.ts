import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { testCli } from '../../support/cli.ts';
import { closed, connectTo } from '../../support/client.ts';
import { KeptConnection } from '../../support/keep-alive.ts';
import { BIN, cleanEnv, finished } from '../../support/process.ts';
import { rawPost } from '../../support/raw-http.ts';
import { query } from '../../support/server.ts';
import { until } from '../../support/until.ts';

describe('serve with 64 open files', () => {
  it('takes 16 connections, closes the others at once and logs it; the store has the files that it needs', async () => {
    const cli = testCli();
    const { key } = await cli.given('First');
    const command = ['-c', 'ulimit -n 64 && exec "$0" "$@"', process.execPath, BIN, 'serve', '--port', '0'];
    const child = spawn('sh', command, {
      env: cleanEnv({ SVC_API_DATABASE: cli.database, LOG_LEVEL: 'info' }),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const end = finished(child);
    try {
      const url = /http:\S+/.exec(String((await once(child.stdout, 'data'))[0]))![0];
      const kept = await KeptConnection.open(url);
      const ask = async (secret: string) => {
        const headers = [`Authorization: Bearer ${secret}`, 'Content-Type: application/json'];
        kept.send(rawPost(headers, '{"query":"{ me { name } }"}'));
        return kept.status();
      };
      assert.equal(await ask(key), 200);
      const clients: Socket[] = [];
      let left = 0;
      for (let number = 0; number < 100; number += 1) {
        const client = await connectTo(url);
        clients.push(client);
        void closed(client).then(() => (left += 1));
        client.resume();
      }
      await until(() => left >= 100 - 15);
      // A key that is not cached yet must be read from the store.
      const second = await cli.given('Second');
      assert.deepEqual([await ask(second.key), await ask(key), left], [200, 200, 85]);
      for (const client of clients) client.destroy();
      await until(() =>
        query(url, key, '{ online }').then(
          ({ status }) => status === 200,
          () => false,
        ),
      );
      kept.close();
    } finally {
      child.kill('SIGTERM');
    }
    const { code, stderr } = await end;
    assert.equal(code, 0);
    assert.match(stderr, /"reason":"too many connections"/);
    assert.doesNotMatch(stderr, /EMFILE/);
  });
});
