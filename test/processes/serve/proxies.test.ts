import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { testCli } from '../../support/cli.ts';
import { askFastCgi, fastCgiAnswers, fastCgiQuestion } from '../../support/fastcgi.ts';
import { ASKING } from '../../support/forward-auth.ts';
import { freePort } from '../../support/port.ts';
import { finished, startCli } from '../../support/process.ts';
import { sendRaw } from '../../support/raw-http.ts';
import { tempFolder } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

describe('serve --fastcgi-port', () => {
  const start = (...args: string[]) =>
    startCli(['serve', '--port', '0', ...args], { env: { SVC_API_DATABASE: testCli().database } });

  it('answers a web server that asks whether requests may pass', async () => {
    const port = await freePort();
    const child = start('--fastcgi-port', String(port));
    const end = finished(child);
    await once(child.stdout!, 'data');
    const question = fastCgiQuestion({
      REQUEST_METHOD: 'GET',
      REQUEST_URI: '/',
      HTTP_HOST: 'localhost',
      SVC_API_REQUIRE: 'key',
    });
    const [answer] = fastCgiAnswers(await askFastCgi(port, question));
    assert.match(answer!.text, /^Status: 401\r\n/);
    child.kill('SIGTERM');
    assert.equal((await end).code, 0);
  });

  it('says so, and serves nothing, if that is not possible', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as { port: number };
    const { code, stdout, stderr } = await finished(start('--fastcgi-port', String(port)));
    assert.deepEqual([code, stdout], [1, '']);
    const message = `The server cannot answer by FastCGI: port ${port} is taken. Choose another port with --fastcgi-port.`;
    assert.ok(stderr.includes(message), stderr);
    taken.close();
    const wrong = await finished(start('--fastcgi-port', 'x'));
    assert.match(wrong.stderr, /^Error: --fastcgi-port is "x", which is not a port\./);
  });
});

describe('serve, to proxies', () => {
  it('answers by the routes of its configuration, and by the changed ones once it has taken them', async () => {
    const [file, fastCgiPort] = [join(tempFolder(), 'svc-api.yaml'), await freePort()];
    const declare = (allow: string) => writeFileSync(file, `routes: [{ host: "*", path: /x, allow: ${allow} }]\n`);
    declare('open');
    const child = startCli(['serve', '--port', '0', '--config', file, '--fastcgi-port', String(fastCgiPort)], {
      env: { SVC_API_DATABASE: testCli().database, LOG_LEVEL: 'info' },
    });
    const end = finished(child);
    let log = '';
    child.stderr!.on('data', (chunk: string) => (log += chunk));
    const [line] = (await once(child.stdout!, 'data')) as [string];
    const url = line.slice('Listening on '.length).trim();
    const statuses = async () => {
      const { target, headers } = ASKING.nginx({ target: '/x' });
      const asked = await sendRaw(url, [`GET ${target} HTTP/1.1`, ...headers, '\r\n'].join('\r\n'));
      const question = fastCgiQuestion({ REQUEST_METHOD: 'GET', REQUEST_URI: '/x', HTTP_HOST: 'localhost' });
      const [answer] = fastCgiAnswers(await askFastCgi(fastCgiPort, question));
      return [asked.status, Number(/^Status: (\d+)/.exec(answer!.text)![1])];
    };
    assert.deepEqual(await statuses(), [200, 200]);
    declare('key');
    await until(() => log.includes('the configuration was taken'));
    assert.deepEqual(await statuses(), [401, 401]);
    child.kill('SIGTERM');
    assert.equal((await end).code, 0);
  });
});
