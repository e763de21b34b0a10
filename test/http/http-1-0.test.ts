import assert from 'node:assert/strict';
import { connectTo, readToEnd } from '../support/client.ts';
import { startTestService, type TestService } from '../support/server.ts';

describe('a load balancer that speaks HTTP/1.0', () => {
  let test: TestService;
  before(async () => {
    test = await startTestService();
  });
  after(() => test.stop());

  const ask = async (...head: string[]) => {
    const socket = await connectTo(test.url);
    socket.write([...head, '', ''].join('\r\n'));
    return readToEnd(socket);
  };

  it('checks the health without a Host, and its connection is closed', async () => {
    for (const path of ['/healthz', '/readyz']) {
      assert.match(await ask(`GET ${path} HTTP/1.0`), /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n\{"status":"ok"\}$/, path);
      assert.match(await ask(`HEAD ${path} HTTP/1.0`), /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n$/, path);
      assert.match(await ask(`GET ${path} HTTP/1.0`, 'Host: x'), /^HTTP\/1\.1 200 OK\r\n/, path);
    }
  });

  it('learns by OPTIONS / whether the store answers, as HAProxy asks by default', async () => {
    assert.match(await ask('OPTIONS / HTTP/1.0'), /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(await ask('OPTIONS /graphql HTTP/1.0'), /^HTTP\/1\.1 400 /);
  });

  it('gets nothing else without a Host, and in HTTP/1.1 nothing at all', async () => {
    for (const first of ['GET / HTTP/1.0', 'GET /graphql HTTP/1.0', 'GET /healthz/x HTTP/1.0'])
      assert.match(await ask(first), /^HTTP\/1\.1 400 [^]*BAD_REQUEST/, first);
    assert.match(await ask('GET /healthz HTTP/1.1', 'Connection: close'), /^HTTP\/1\.1 400 [^]*BAD_REQUEST/);
  });
});
