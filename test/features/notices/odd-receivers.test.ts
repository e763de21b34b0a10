import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { noticeOf, type NoticeAnswer } from '../../../src/features/notices/notice.ts';
import { postNotice, readSigningKey } from '../../../src/features/notices/post.ts';
import { pairOf } from '../../support/certificates.ts';
import { skipUnlessCI } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { newNoticeSecret } from '../../support/webhook.ts';

const notice = noticeOf('test', { event: ['x'], at: 0, data: {} });
const keys = [readSigningKey(newNoticeSecret())!];

describe('an attempt to deliver a notice', () => {
  const sockets = new Set<Socket>();
  const servers = new Set<Server>();
  const listen = async (behave: (socket: Socket) => void, host = '127.0.0.1', isTls = false) => {
    const accept = (socket: Socket) => {
      sockets.add(socket);
      socket
        .on('error', () => {})
        .once('close', () => sockets.delete(socket))
        .resume();
      behave(socket);
    };
    const server = isTls
      ? createTlsServer(pairOf('first'), accept).on('tlsClientError', () => {})
      : createServer(accept);
    servers.add(server);
    server.listen(0, host);
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  /** Posts a notice. The default timeout is longer than any busy machine takes. */
  const post = (url: string, { signal = new AbortController().signal, timeoutMs = 60_000 } = {}) =>
    postNotice(notice, { url, keys }, { now: 0, version: '1', signal, timeoutMs });
  /** The result of an attempt whose receiver handles each connection this way. */
  const answerTo = async (behave: (socket: Socket) => void, options?: { timeoutMs: number }): Promise<NoticeAnswer> =>
    post(`http://127.0.0.1:${await listen(behave)}/`, options);
  const failed = (failure: string): NoticeAnswer => ({
    is: 'failed',
    status: undefined,
    failure,
    retryAfterMs: undefined,
  });
  const NO_ANSWER = failed('no answer within 0.3 seconds');
  const once200 = (socket: Socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n');
  /** Writes a text repeatedly until the client disconnects. */
  const endlessly = (text: string, every: number) => (socket: Socket) => {
    const timer = setInterval(() => socket.write(text), every);
    socket.once('close', () => clearInterval(timer));
  };

  afterEach(() => {
    for (const socket of sockets) socket.destroy();
    for (const server of servers) server.close();
    servers.clear();
  });

  it('ends after its time, however the receiver keeps it going', async () => {
    const slowly = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'.split('');
    for (const behave of [
      () => {},
      (socket: Socket) => {
        const timer = setInterval(() => socket.write(slowly.shift() ?? ''), 20);
        socket.once('close', () => clearInterval(timer));
      },
      endlessly('HTTP/1.1 100 Continue\r\n\r\n', 5),
      endlessly('HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n', 5),
    ]) {
      assert.deepEqual(await answerTo(behave, { timeoutMs: 300 }), NO_ANSWER);
      await until(() => sockets.size === 0);
    }
  });

  it('fails with an endless head, with invalid HTTP, and with closed connections', async () => {
    for (const [behave, failure] of [
      [(socket: Socket) => void socket.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}`), 'HPE_HEADER_OVERFLOW'],
      [(socket: Socket) => void socket.write('SSH-2.0-OpenSSH_9.2\r\n'), 'HPE_INVALID_CONSTANT'],
      [(socket: Socket) => void socket.destroy(), 'ECONNRESET'],
      [(socket: Socket) => void socket.end('HTTP/1.1 200 OK\r\n'), 'ECONNRESET'],
    ] as const)
      assert.deepEqual(await answerTo(behave), failed(failure));
  });

  it('fails if the receiver speaks another protocol from then on', async () => {
    const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n';
    const answer = await answerTo((socket) => void socket.write(switching));
    assert.equal(answer.is, 'failed');
  });

  it('succeeds with the head of an answer, whatever follows', async () => {
    const cut = (socket: Socket) => {
      once200(socket);
      socket.destroySoon();
    };
    const continued = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n';
    for (const behave of [once200, cut]) assert.deepEqual(await answerTo(behave), { is: 'taken', status: 200 });
    assert.deepEqual(await answerTo((socket) => void socket.write(continued)), { is: 'taken', status: 204 });
  });

  it('goes to addresses of IPv6', async function () {
    let port;
    try {
      port = await listen(once200, '::1');
    } catch {
      skipUnlessCI(this, 'it has no IPv6');
    }
    assert.deepEqual(await post(`http://[::1]:${port}/`), { is: 'taken', status: 200 });
  });

  it('sends nothing to a server with another certificate, or with one of an unknown authority', async () => {
    let sent = 0;
    const port = await listen((socket) => void socket.on('data', () => (sent += 1)), '127.0.0.1', true);
    assert.deepEqual(await post(`https://localhost:${port}/t0ken`), failed('DEPTH_ZERO_SELF_SIGNED_CERT'));
    assert.equal(sent, 0);
  });

  it('fails where a name is unknown', async () => {
    const answer = await post('https://nobody.invalid/t0ken', { timeoutMs: 300 });
    // The DNS server can be slow.
    assert.match(JSON.stringify(answer), /ENOTFOUND|EAI_AGAIN|no answer within/);
    assert.equal(JSON.stringify(answer).includes('t0ken'), false);
  });

  it('is ended at once', async () => {
    const ending = new AbortController();
    const port = await listen(() => ending.abort());
    assert.deepEqual(
      await post(`http://127.0.0.1:${port}/`, { signal: ending.signal }),
      failed('the attempt was ended'),
    );
  });
});
