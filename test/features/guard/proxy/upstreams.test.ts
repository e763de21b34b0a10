import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { formatHost, parseUpstream } from '../../../../src/features/routes/index.ts';
import { type GuardedService, startGuarded } from '../support/guard.ts';
import { collectingLog } from '../../../support/log.ts';
import { tempFolder } from '../../../support/temp.ts';
import { CERTIFICATE } from '../../../support/tls-proxy.ts';

describe('the address of an upstream', () => {
  it('is that of a server', () => {
    for (const [text, address, host] of [
      ['http://127.0.0.1:3000', { protocol: 'http:', host: '127.0.0.1', port: 3000 }, '127.0.0.1:3000'],
      ['http://grafana', { protocol: 'http:', host: 'grafana', port: 80 }, 'grafana'],
      ['HTTPS://Grafana.internal/', { protocol: 'https:', host: 'grafana.internal', port: 443 }, 'grafana.internal'],
      ['http://[::1]:80/', { protocol: 'http:', host: '::1', port: 80 }, '[::1]'],
      ['http+unix:///run/a%20b.sock', { protocol: 'http:', socketPath: '/run/a b.sock' }, 'localhost'],
    ] as const) {
      assert.deepEqual([parseUpstream(text), formatHost(address)], [{ value: address }, host]);
    }
  });

  it('is refused if it is something else, with what to write', () => {
    for (const [text, problem] of Object.entries({
      'localhost:3000': '"localhost:3000" is not the address of an upstream. Did you mean http://localhost:3000?',
      '127.0.0.1:3000': '"127.0.0.1:3000" is not the address of an upstream. Did you mean http://127.0.0.1:3000?',
      'http://': '"http://" is not the address of an upstream',
      'ftp://a': '"ftp://a" is not the address of an upstream',
      'http+unix://a/b.sock': '"http+unix://a/b.sock" is not the address of an upstream',
      'http+unix:///': '"http+unix:///" is not the address of an upstream',
      'http+unix:///a%zz': '"http+unix:///a%zz" is not the address of an upstream',
      'http+unix:///a%ff': '"http+unix:///a%ff" is not the address of an upstream',
      'http://a/path': '"http://a/path" must not have a path: paths are passed on unchanged',
      'http://a?query': '"http://a?query" must not have a path: paths are passed on unchanged',
      'http://user:hunter2@a': 'The address contains a password, which every user of this machine can see',
    })) {
      const forms = 'http://127.0.0.1:3000, https://grafana.internal or http+unix:///run/app.sock';
      assert.deepEqual(parseUpstream(text), {
        refusal: `${problem}${problem.endsWith('?') ? '' : '.'} Write it as ${forms}.`,
      });
    }
  });
});

describe('an upstream', () => {
  let service: GuardedService;
  const { log, lines } = collectingLog();
  before(async () => {
    service = await startGuarded((_, outgoing) => outgoing.end('fine'), { log });
  });
  after(() => service.stop());

  const get = (url: string) => fetch(url, { headers: { authorization: `Bearer ${service.secret}` } });

  it('may listen on a Unix socket', async () => {
    const socketPath = join(tempFolder(), 'app.sock');
    const server = createServer((incoming, outgoing) => outgoing.end(incoming.headers.host));
    await once(server.listen(socketPath), 'listening');
    const url = await service.beside({ upstream: { protocol: 'http:', socketPath } });
    assert.equal(await (await get(url)).text(), new URL(url).host);
    server.closeAllConnections();
    server.close();
  });

  it('over TLS is not believed if its certificate is not', async () => {
    const [cert, key] = [readFileSync(CERTIFICATE), readFileSync(join(dirname(CERTIFICATE), 'key.pem'))];
    const server = createTlsServer({ cert, key }, (_, outgoing) => outgoing.end('fine'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const url = await service.beside({ upstream: { protocol: 'https:', host: 'localhost', port } });
    const reply = await get(url);
    assert.deepEqual([reply.status, (await reply.text()).includes('BAD_GATEWAY')], [502, true]);
    const { fields } = lines.at(-1)!;
    assert.match(String((fields as { err: Error }).err.message), /self-signed certificate/);
    server.close();
  });
});
