import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { testCli } from '../support/cli.ts';
import { connectTo } from '../support/client.ts';
import { BIN, cleanEnv } from '../support/process.ts';
import { until } from '../support/until.ts';

const CLIENTS = 2000;
const DESCRIPTORS = 1024;

describe('clients without a key that connect, send nothing, and never close', () => {
  const clients: Socket[] = [];
  let child: ChildProcess | undefined;
  afterEach(() => {
    for (const client of clients.splice(0)) client.destroy();
    child?.kill('SIGKILL');
  });

  it('shut out no others for longer than their time-out, though there are twice as many as descriptors', async () => {
    const command = ['-c', `ulimit -n ${DESCRIPTORS} && exec "$0" "$@"`, process.execPath, BIN, 'serve', '--port', '0'];
    child = spawn('sh', command, {
      env: cleanEnv({ SVC_API_DATABASE: testCli().database, LOG_LEVEL: 'error' }),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const url = /http:\S+/.exec(String((await once(child.stdout!, 'data'))[0]))![0];
    const connect = async () => {
      const client = await connectTo(url, { allowHalfOpen: true });
      client.resume();
      return client;
    };
    // In groups, because the accept queue is shorter.
    for (let number = 0; number < CLIENTS; number += 100)
      clients.push(...(await Promise.all(Array.from({ length: 100 }, connect))));
    const isAnswered = () =>
      fetch(`${url}/healthz`, { headers: { connection: 'close' } }).then(
        ({ status }) => status === 200,
        () => false,
      );
    assert.equal(await isAnswered(), false, 'there are enough of them to fill it');
    await until(isAnswered);
    // Clients that were told of a timeout had been accepted. More of them than descriptors would mean a second round.
    const told = clients.filter(({ bytesRead }) => bytesRead > 0);
    assert.ok(told.length > 0 && told.length < DESCRIPTORS, `${told.length}`);
    for (let inARow = 0; inARow < 20; inARow += 1) if (!(await isAnswered())) inARow = 0;
  });
});
