import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { type GuardedService, startGuarded } from '../support/guard.ts';
import { connectRaw } from '../../../support/raw-connection.ts';
import { collectingLog } from '../../../support/log.ts';
import { freePort } from '../../../support/port.ts';
import { until } from '../../../support/until.ts';

/** The first timeout, in milliseconds. */
const SOON = 50;

/** Repeats an attempt with longer timeouts until the machine keeps up. Mocha's timeout ends one that never succeeds. */
async function withTimeouts(attempt: (timeoutMs: number) => Promise<boolean>): Promise<void> {
  for (let timeoutMs = SOON; !(await attempt(timeoutMs)); timeoutMs *= 2);
}

describe('a request that is passed on', () => {
  let service: GuardedService;
  let serve: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  const { log, lines } = collectingLog();
  before(async () => {
    service = await startGuarded((incoming, outgoing) => serve(incoming, outgoing), { log });
  });
  after(() => service.stop());
  beforeEach(() => {
    lines.length = 0;
  });

  const closeOf = (stream: IncomingMessage) =>
    new Promise((resolve) => {
      stream.once('close', resolve);
    });
  /** True if the service had no time to answer. */
  const isHeldUp = ({ received }: { received: string }) => received.startsWith('HTTP/1.1 504 ');
  const isAboutHalf = ({ fields }: (typeof lines)[number]) =>
    (fields as { err?: Error }).err?.message === 'The upstream did not go on with its answer.';
  const open = (first = 'GET / HTTP/1.1', headers: readonly string[] = [], url = service.url) => {
    const raw = connectRaw(url);
    raw.request(first, 'Host: a', service.authorization, ...headers);
    return raw;
  };

  it('is answered 502 if the service does not listen, and the log says why', async () => {
    const port = await freePort();
    const url = await service.beside({ upstream: { protocol: 'http:', host: '127.0.0.1', port } });
    const raw = open('GET / HTTP/1.1', [], url);
    const text = await raw.receives(/\}$/);
    assert.match(text, /^HTTP\/1\.1 502 Bad Gateway\r\n[^]*content-type: application\/json/);
    assert.match(text, /"message":"The service behind this one cannot be reached[^"]*"[^]*"code":"BAD_GATEWAY"/);
    assert.doesNotMatch(text, new RegExp(`${port}`), 'the address is nothing for clients');
    const [line] = lines;
    assert.equal(line!.message, 'the upstream did not answer');
    assert.match(String((line!.fields as { err: Error }).err.message), /ECONNREFUSED/);
    // The connection is kept open.
    raw.request('GET / HTTP/1.1', 'Host: a', service.authorization);
    await raw.receives(/\}HTTP\/1\.1 502 [^]*\}$/);
    raw.socket.destroy();
  });

  it('is answered 504 if the service does not begin its answer in time, which ends the request there', async () => {
    await withTimeouts(async (timeoutMs) => {
      let gone: Promise<unknown> | undefined;
      serve = (_, outgoing) => void (gone = once(outgoing, 'close'));
      const raw = open('GET / HTTP/1.1', [], await service.beside({ timeoutMs }));
      assert.match(await raw.receives(/\}$/), /^HTTP\/1\.1 504 Gateway Timeout\r\n[^]*"code":"GATEWAY_TIMEOUT"/);
      await gone;
      raw.socket.destroy();
      return gone !== undefined;
    });
  });

  it('is answered 504 if the service does not take its body', async () => {
    serve = () => {};
    await withTimeouts(async (timeoutMs) => {
      const raw = open('POST / HTTP/1.1', ['Content-Length: 100000000'], await service.beside({ timeoutMs }));
      const feed = () => {
        while (!raw.isClosed && raw.socket.write('a'.repeat(64 * 1024)));
      };
      raw.socket.on('drain', feed);
      feed();
      const answer = await raw.receives(/^HTTP\/1\.1 \d+ /);
      raw.socket.destroy();
      // Until all buffers are full, the guard blames the client.
      return answer.startsWith('HTTP/1.1 504 ');
    });
  });

  it('is answered 504 if the service neither takes the body nor refuses it', async () => {
    service.upstream.once('checkContinue', () => {});
    const raw = open(
      'POST / HTTP/1.1',
      ['Expect: 100-continue', 'Content-Length: 3'],
      await service.beside({ timeoutMs: SOON }),
    );
    await raw.receives(/^HTTP\/1\.1 504 /);
    raw.socket.destroy();
  });

  it('is answered 408 if its client does not go on with the body, which ends the request there', async () => {
    await withTimeouts(async (timeoutMs) => {
      let gone: Promise<unknown> | undefined;
      serve = (incoming) => void (gone = closeOf(incoming.resume()));
      const raw = open('POST / HTTP/1.1', ['Content-Length: 3'], await service.beside({ timeoutMs }));
      raw.send('a');
      assert.match(await raw.receives(/\}$/), /^HTTP\/1\.1 408 Request Timeout\r\n[^]*"code":"TIMEOUT"/);
      await gone;
      await raw.closed();
      return gone !== undefined;
    });
  });

  it('is answered 408 if its client sends its body a byte at a time, which ends the request there', async () => {
    await withTimeouts(async (timeoutMs) => {
      let gone: Promise<unknown> | undefined;
      serve = (incoming) => void (gone = closeOf(incoming.resume()));
      const raw = open('POST / HTTP/1.1', ['Content-Length: 100000'], await service.beside({ timeoutMs }));
      const dripping = setInterval(() => raw.send('a'), SOON / 5);
      assert.match(await raw.receives(/\}$/), /^HTTP\/1\.1 408 Request Timeout\r\n[^]*"code":"TIMEOUT"/);
      clearInterval(dripping);
      await gone;
      await raw.closed();
      return gone !== undefined;
    });
  });

  it('breaks off for its client if the service does not go on with its answer, and the log says so', async () => {
    for (const begin of ['', 'half'])
      await withTimeouts(async (timeoutMs) => {
        lines.length = 0;
        let gone: Promise<unknown> | undefined;
        serve = (_, outgoing) => {
          gone = once(outgoing, 'close');
          outgoing.writeHead(200, { 'Content-Length': 100 });
          outgoing.flushHeaders();
          outgoing.write(begin);
        };
        const raw = open('GET / HTTP/1.1', [], await service.beside({ timeoutMs }));
        await raw.receives(/^HTTP\/1\.1 \d+ /);
        if (isHeldUp(raw)) return false;
        await raw.closed();
        assert.match(raw.received, new RegExp(`^HTTP/1\\.1 200 OK\r\n[^]*\r\n\r\n${begin}$`));
        await gone;
        assert.ok(isAboutHalf(lines[0]!));
        return true;
      });
  });

  it('is passed events for as long as it likes, however seldom they come', async () => {
    await withTimeouts(async (timeoutMs) => {
      serve = (_, outgoing) => {
        outgoing.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' }).write('data: 1\n\n');
        setTimeout(() => outgoing.end('data: 2\n\n'), 5 * timeoutMs);
      };
      const raw = open('GET / HTTP/1.1', [], await service.beside({ timeoutMs }));
      await raw.receives(/^HTTP\/1\.1 \d+ /);
      if (!isHeldUp(raw)) assert.match(await raw.receives('\r\n0\r\n\r\n'), /data: 1\n\n[^]*data: 2\n\n/);
      raw.socket.destroy();
      return !isHeldUp(raw);
    });
  });

  it('may take as long as it likes while its body and its answer arrive', async () => {
    await withTimeouts(async (timeoutMs) => {
      lines.length = 0;
      serve = (incoming, outgoing) => {
        incoming.resume().once('end', () => {
          outgoing.write('a');
          const going = setInterval(() => outgoing.write('a'), SOON / 5);
          setTimeout(() => {
            clearInterval(going);
            outgoing.end('b');
          }, 1.2 * timeoutMs);
        });
      };
      const raw = open('POST / HTTP/1.1', ['Transfer-Encoding: chunked'], await service.beside({ timeoutMs }));
      for (const end = performance.now() + 1.2 * timeoutMs; performance.now() < end;) {
        raw.send(`64\r\n${'a'.repeat(100)}\r\n`);
        await delay(SOON / 5);
      }
      raw.send('0\r\n\r\n');
      await raw.receives('0\r\n\r\n').catch(() => {});
      raw.socket.destroy();
      // A pause of this process as long as the timeout can end either half.
      const isPaused = /^HTTP\/1\.1 (408|504) /.test(raw.received) || lines.some(isAboutHalf);
      if (!isPaused) assert.match(raw.received, /^HTTP\/1\.1 200 [^]*1\r\na\r\n[^]*1\r\nb\r\n0\r\n\r\n$/);
      return !isPaused;
    });
  });

  it('breaks off for its client if the service breaks off its answer', async () => {
    for (const headers of [{ 'Content-Length': 100 }, {}]) {
      serve = (_, outgoing) => {
        outgoing.writeHead(200, headers).write('half');
        setImmediate(() => outgoing.destroy());
      };
      const raw = open();
      await raw.closed();
      assert.match(raw.received, /half/);
      assert.doesNotMatch(raw.received, /\r\n0\r\n\r\n$/, 'it must not look whole');
    }
  });

  it('breaks off for the service if its client does, before the answer and within it', async () => {
    for (const isAnswering of [false, true]) {
      const arrived = Promise.withResolvers<void>();
      const gone = Promise.withResolvers<void>();
      serve = (_, outgoing) => {
        outgoing.once('close', gone.resolve);
        if (isAnswering) outgoing.write('half');
        arrived.resolve();
      };
      const raw = open();
      await arrived.promise;
      if (isAnswering) await raw.receives('half');
      raw.socket.resetAndDestroy();
      await gone.promise;
    }
  });

  it('breaks off for the service if its client does so within the body', async () => {
    const arrived = Promise.withResolvers<IncomingMessage>();
    serve = (incoming) => arrived.resolve(incoming.resume());
    const raw = open('POST / HTTP/1.1', ['Content-Length: 3']);
    raw.send('a');
    const incoming = await arrived.promise;
    incoming.on('error', () => {});
    raw.socket.destroy();
    await until(() => incoming.destroyed);
    assert.equal(incoming.complete, false);
  });

  describe('over a connection that the service has just closed', () => {
    /** Closes each connection when a second request arrives on it. */
    const serveOnce = () => {
      const known = new WeakSet<object>();
      const methods: string[] = [];
      serve = (incoming, outgoing) => {
        const { socket, method = '' } = incoming;
        methods.push(method);
        if (known.has(socket)) return void socket.destroy();
        known.add(socket);
        incoming.resume().once('end', () => outgoing.end('fine'));
        return undefined;
      };
      return methods;
    };

    for (const method of ['GET', 'HEAD', 'OPTIONS', 'DELETE']) {
      it(`is sent again over another one, if it is ${method}`, async () => {
        const url = await service.beside({});
        const methods = serveOnce();
        const raw = open('GET / HTTP/1.1', [], url);
        await raw.receives(/fine$/);
        raw.request(`${method} / HTTP/1.1`, 'Host: a', service.authorization);
        await raw.receives(/fineHTTP\/1\.1 200 /);
        assert.deepEqual(methods, ['GET', method, method]);
        raw.socket.destroy();
      });
    }

    it('is not sent again if it might then be done twice', async () => {
      const url = await service.beside({});
      const methods = serveOnce();
      const raw = open('GET / HTTP/1.1', [], url);
      await raw.receives(/fine$/);
      raw.request('POST / HTTP/1.1', 'Host: a', service.authorization);
      await raw.receives(/fineHTTP\/1\.1 502 [^]*\}$/);
      assert.deepEqual(methods, ['GET', 'POST']);
      raw.socket.destroy();
    });
  });

  it('goes over a connection that is kept, and that is closed before the service might do so', async () => {
    const ports = new Set<number | undefined>();
    serve = (incoming, outgoing) => {
      ports.add(incoming.socket.remotePort);
      outgoing.end('fine');
    };
    const url = await service.beside({});
    for (let index = 0; index < 3; index += 1) {
      const raw = open('GET / HTTP/1.1', [], url);
      await raw.receives(/fine$/);
      raw.socket.destroy();
      await once(raw.socket, 'close');
    }
    assert.equal(ports.size, 1);
  });
});
