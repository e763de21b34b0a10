import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { testCli } from '../support/cli.ts';
import { connectTo } from '../support/client.ts';
import { BIN, cleanEnv } from '../support/process.ts';
import { until } from '../support/until.ts';

/** Once the last of them has had its time, others are answered again. A second round of them would take two. */
const SOON = 1.5;

describe('clients without a key that connect, send nothing, and never close', () => {
  const clients: Socket[] = [];
  let child: ChildProcess | undefined;
  afterEach(() => {
    for (const client of clients.splice(0)) client.destroy();
    child?.kill('SIGKILL');
  });

  it('shut out nobody else for longer than their time-out, though there are twice as many as descriptors', async () => {
    const command = ['-c', 'ulimit -n 1024 && exec "$0" "$@"', process.execPath, BIN, 'serve', '--port', '0'];
    child = spawn('sh', command, {
      env: cleanEnv({ SVC_API_DATABASE: testCli().database, LOG_LEVEL: 'error' }),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const url = /http:\S+/.exec(String((await once(child.stdout!, 'data'))[0]))![0];
    // In parts: the queue of connections that are not accepted yet is shorter.
    // How long this machine lets one of them wait, as its load is: those that are told of the time-out were accepted.
    const heldForMs: number[] = [];
    const connect = async () => {
      const client = await connectTo(url, { allowHalfOpen: true });
      const since = performance.now();
      client.resume().once('end', () => {
        if (client.bytesRead > 0) heldForMs.push(performance.now() - since);
      });
      return client;
    };
    for (let number = 0; number < 2000; number += 100)
      clients.push(...(await Promise.all(Array.from({ length: 100 }, connect))));
    const last = performance.now();
    const isAnswered = () =>
      fetch(`${url}/healthz`, { headers: { connection: 'close' } }).then(
        ({ status }) => status === 200,
        () => false,
      );
    let answeredFrom: number | undefined;
    assert.equal(await isAnswered(), false, 'there are enough of them to fill it');
    // From the first answer on, everybody is answered.
    for (let inARow = 0; inARow < 20; inARow += 1) {
      await until(async () => {
        const answered = await isAnswered();
        if (!answered) [inARow, answeredFrom] = [0, undefined];
        return answered;
      });
      answeredFrom ??= performance.now();
    }
    await until(() => heldForMs.length > 0);
    const shutOutMs = answeredFrom! - last;
    assert.ok(shutOutMs < SOON * heldForMs[0]!, `${shutOutMs} ms, and the first was held for ${heldForMs[0]!} ms`);
  });
});
