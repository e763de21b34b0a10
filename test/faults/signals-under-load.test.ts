import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testCli } from '../support/cli.ts';
import { type Load, startLoad } from '../support/load.ts';
import { startCli } from '../support/process.ts';
import { openSocket, startOnSocket } from '../support/systemd.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

describe('serve under load', () => {
  const started: ChildProcess[] = [];
  afterEach(() => {
    for (const child of started.splice(0)) child.kill('SIGKILL');
  });

  /** A server, and its log. */
  const follow = async (child: ChildProcess, workers: number) => {
    started.push(child);
    const log = { text: '' };
    const said = (message: string) => log.text.split(`"msg":"${message}"`).length - 1;
    child.stderr!.setEncoding('utf8').on('data', (text: string) => (log.text += text));
    const [, url = ''] = /(http:\S+)/.exec(String((await once(child.stdout!, 'data'))[0]))!;
    await until(() => said('listening') === workers);
    return { child, url, said };
  };
  const answered = ({ statuses }: Load) => statuses.get(200) ?? 0;
  const more = async (load: Load, count = 200) => {
    const before = answered(load);
    await until(() => answered(load) >= before + count);
  };

  for (const workers of [1, 2]) {
    const flags = ['serve', '--port', '0', '--workers', String(workers)];

    it(`answers every request while it reads its configuration again 10 times: --workers ${workers}`, async () => {
      const cli = testCli();
      const { key } = await cli.given('Reader');
      const config = join(tempFolder(), 'svc-api.yaml');
      writeFileSync(config, 'resources: [WIKI]\n');
      const env = { LOG_LEVEL: 'info', SVC_API_DATABASE: cli.database };
      const server = await follow(startCli([...flags, '--config', config], { env }), workers);
      const load = startLoad(server.url, key, { kept: 8, fresh: 4 });
      for (let time = 1; time <= 10; time += 1) {
        await more(load);
        // The watcher notices this change at about the same time.
        writeFileSync(config, `resources: [WIKI${time}]\n`);
        const taken = server.said('the configuration was loaded');
        server.child.kill('SIGHUP');
        await until(() => server.said('the configuration was loaded') >= taken + workers);
      }
      await more(load);
      await load.stop();
      assert.deepEqual([[...load.statuses.keys()], [...load.errors], load.last()], [[200], [], 0]);
      server.child.kill('SIGTERM');
      await once(server.child, 'exit');
    });

    it(`answers every request of a kept connection when it stops, and says which is its last: --workers ${workers}`, async () => {
      const cli = testCli();
      const { key } = await cli.given('Reader');
      const env = { LOG_LEVEL: 'info', SVC_API_DATABASE: cli.database };
      const server = await follow(startCli(flags, { env }), workers);
      const load = startLoad(server.url, key, { kept: 16 });
      await more(load);
      server.child.kill('SIGTERM');
      assert.deepEqual(await once(server.child, 'exit'), [0, null]);
      // After its last answer, each client tries another connection, finally in vain.
      await until(() => load.errors.has('ECONNREFUSED'));
      await load.stop();
      assert.deepEqual([[...load.statuses.keys()], load.dropped()], [[200], 0]);
      assert.ok(load.last() >= 16, String(load.last()));
    });

    it(`is restarted on a socket that systemd keeps, unnoticed by clients: --workers ${workers}`, async () => {
      const cli = testCli();
      const { key } = await cli.given('Reader');
      const env = { LOG_LEVEL: 'info', SVC_API_DATABASE: cli.database };
      const socket = openSocket();
      const args = ['serve', '--workers', String(workers)];
      let server = await follow(startOnSocket(socket, args, env), workers);
      const load = startLoad(server.url, key, { kept: 8, fresh: 4 });
      for (let time = 0; time < 3; time += 1) {
        await more(load);
        server.child.kill('SIGTERM');
        assert.deepEqual(await once(server.child, 'exit'), [0, null]);
        server = await follow(startOnSocket(socket, args, env), workers);
      }
      await more(load);
      await load.stop();
      assert.deepEqual([[...load.statuses.keys()], [...load.errors]], [[200], []]);
      server.child.kill('SIGTERM');
      await once(server.child, 'exit');
      socket.close();
    });
  }
});
