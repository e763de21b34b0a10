import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocket, WebSocketServer } from 'ws';
import { OPERATOR } from '../../../../src/keys/authorization/principal.ts';
import { type GuardedService, PERMISSION, startGuarded } from '../support/guard.ts';
import { connectRaw } from '../../../support/raw-connection.ts';
import { authenticate, createChild, LOSSES } from '../../../support/keys.ts';
import { until } from '../../../support/until.ts';

describe('a switch to another protocol', () => {
  let service: GuardedService;
  const seen: IncomingMessage[] = [];
  /** The service's ends of upgraded connections. */
  const ends: Duplex[] = [];
  /** Runs before the service upgrades a connection. */
  let beforeSwitch: () => Promise<unknown>;
  before(async () => {
    const server = createServer((incoming, outgoing) => {
      seen.push(incoming);
      if (incoming.url === '/slow') return void setTimeout(() => outgoing.end('slow'), 50);
      return void outgoing.writeHead(426, { 'Sec-WebSocket-Version': '13' }).end('no upgrade');
    });
    const echo = new WebSocketServer({ noServer: true });
    server.on('upgrade', (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
      seen.push(incoming);
      ends.push(socket);
      socket.on('error', () => {});
      if (incoming.url === '/ws')
        return echo.handleUpgrade(
          incoming,
          socket,
          head,
          (ws) => void ws.on('message', (data, isBinary) => ws.send(data, { binary: isBinary })),
        );
      if (incoming.url === '/refused')
        return void socket.end('HTTP/1.1 403 Forbidden\r\nX-A: 1\r\nContent-Length: 2\r\n\r\nno');
      if (incoming.url === '/later')
        return void beforeSwitch().then(() =>
          socket.pipe(socket).write('HTTP/1.1 101 Switched\r\nUpgrade: plain\r\nConnection: upgrade\r\n\r\nwelcome'),
        );
      const protocol = incoming.url === '/other' ? 'other' : 'plain';
      // Data follows the head in the same write.
      socket.write(`HTTP/1.1 101 Switched\r\nUpgrade: ${protocol}\r\nConnection: upgrade\r\nX-CaSe: 1\r\n\r\nwelcome`);
      return void socket.pipe(socket);
    });
    service = await startGuarded(server);
  });
  after(() => service.stop());
  beforeEach(() => {
    [seen.length, ends.length] = [0, 0];
  });

  const upgradeTo = (protocol: string, path = '/plain', more: readonly string[] = []) => {
    const raw = connectRaw(service.url);
    raw.request(`GET ${path} HTTP/1.1`, 'Host: a', 'Connection: Upgrade', `Upgrade: ${protocol}`, ...more);
    return raw;
  };

  it('carries WebSocket messages both ways', async () => {
    const headers = { authorization: `Bearer ${service.secret}` };
    const socket = new WebSocket(`${service.url.replace('http', 'ws')}/ws`, { headers });
    await once(socket, 'open');
    for (const message of [Buffer.from('hello'), Buffer.alloc(5_000_000, 'a')]) {
      socket.send(message);
      assert.deepEqual((await once(socket, 'message'))[0], message);
    }
    socket.close(1000);
    assert.equal((await once(socket, 'close'))[0], 1000);
    await until(() => ends.every((end) => end.destroyed));
  });

  it('has the headers of both sides, and the caller', async () => {
    const raw = upgradeTo('PlAin', '/plain', [service.authorization, 'X-Auth-Roles: forged', 'X-CaSe: 2']);
    const text = await raw.receives('welcome');
    assert.match(
      text,
      /^HTTP\/1\.1 101 Switched\r\nX-CaSe: 1\r\nX-Request-Id: [\da-f-]{36}\r\nConnection: Upgrade\r\nUpgrade: plain\r\n\r\nwelcome$/,
    );
    const [{ headers, rawHeaders }] = seen as [IncomingMessage];
    assert.deepEqual([headers.connection, headers.upgrade, headers['x-auth-key-name']], ['Upgrade', 'PlAin', 'Caller']);
    assert.deepEqual([headers.authorization, headers['x-auth-roles']], [undefined, '']);
    assert.ok(rawHeaders.includes('X-CaSe'));
    raw.socket.destroy();
  });

  it('keeps what the client sends at once', async () => {
    const raw = connectRaw(service.url);
    const lines = ['GET /plain HTTP/1.1', 'Host: a', 'Connection: Upgrade', 'Upgrade: plain', service.authorization];
    raw.send([...lines, '', 'early'].join('\r\n'));
    await raw.receives('welcomeearly');
    raw.send('late');
    await raw.receives('welcomeearlylate');
    raw.socket.destroy();
  });

  it('ends on both sides when either one ends', async () => {
    for (const side of ['client', 'service'] as const) {
      ends.length = 0;
      const raw = upgradeTo('plain', '/plain', [service.authorization]);
      await raw.receives('welcome');
      if (side === 'client') raw.socket.destroy();
      else ends[0]!.destroy();
      await raw.closed();
      await until(() => ends[0]!.destroyed);
    }
  });

  it('needs a key', async () => {
    const raw = upgradeTo('plain');
    await raw.closed();
    assert.match(raw.received, /^HTTP\/1\.1 401 [^]*\r\nConnection: close\r\n[^]*"UNAUTHENTICATED"/);
    assert.equal(seen.length, 0);
  });

  it('may be refused by the service, or answered as any other request', async () => {
    const refused = upgradeTo('plain', '/refused', [service.authorization]);
    await refused.closed();
    assert.match(refused.received, /^HTTP\/1\.1 403 Forbidden\r\nX-A: 1\r\n[^]*Connection: close\r\n\r\nno$/);
  });

  it('is 502 if the service switches to another protocol than the client asks for', async () => {
    const raw = upgradeTo('plain', '/other', [service.authorization]);
    await raw.closed();
    assert.match(raw.received, /^HTTP\/1\.1 502 /);
    await until(() => ends[0]!.destroyed);
  });

  it('to another version of HTTP does not happen: requests would pass unchecked', async () => {
    for (const protocol of ['h2c', 'H2C', 'h2', 'HTTP/2.0', 'TLS/1.0', 'plain, h2c']) {
      const raw = upgradeTo(protocol, '/plain', [service.authorization, 'HTTP2-Settings: AAMAAABkAAQAAP__']);
      await raw.closed();
      assert.match(raw.received, /^HTTP\/1\.1 426 [^]*\r\nConnection: close\r\n/, protocol);
      const { headers } = seen.at(-1)!;
      assert.deepEqual(
        [headers.upgrade, headers['http2-settings'], headers.connection],
        [undefined, undefined, 'keep-alive'],
      );
    }
  });

  it('does not happen for a request with a body, which is answered as any other', async () => {
    const raw = connectRaw(service.url);
    const lines = ['Host: a', 'Connection: Upgrade', 'Upgrade: plain', 'Content-Length: 2', service.authorization];
    raw.request('POST /plain HTTP/1.1', ...lines);
    raw.send('ab');
    await raw.closed();
    assert.match(raw.received, /^HTTP\/1\.1 426 /);
  });

  it('begins with GET, or for other protocols than WebSocket with POST', async () => {
    for (const [method, protocol, isPassed] of [
      ['POST', 'plain', true],
      ['POST', 'WebSocket', false],
      ['OPTIONS', 'plain', false],
      ['DELETE', 'plain', false],
      ['PUT', 'websocket', false],
    ] as const) {
      const raw = connectRaw(service.url);
      const lines = ['Host: a', 'Connection: Upgrade', `Upgrade: ${protocol}`, service.authorization];
      raw.request(`${method} /plain HTTP/1.1`, ...lines, 'Content-Length: 0');
      await raw.receives(isPassed ? 'welcome' : 'HTTP/1.1 426 ');
      raw.socket.destroy();
    }
  });

  it('does not happen before an earlier request on the connection has its answer', async () => {
    const raw = connectRaw(service.url);
    raw.send(
      ['GET /slow HTTP/1.1', 'Host: a', service.authorization, '', ''].join('\r\n') +
        ['GET /plain HTTP/1.1', 'Host: a', 'Connection: Upgrade', 'Upgrade: plain', service.authorization, '', ''].join(
          '\r\n',
        ),
    );
    await raw.closed();
    assert.equal(raw.received, '');
    assert.equal(ends.length, 0);
  });

  describe('ends when its key', () => {
    /** Opens a connection with a new key. */
    const openWith = async (name: string, more: object = {}) => {
      const { key: secret, apiKey: key } = await service.keys.create(
        { name, permissions: ['DASHBOARD:READ_ANY'], ...more },
        OPERATOR,
      );
      const raw = upgradeTo('plain', '/plain', [`Authorization: Bearer ${secret}`]);
      await raw.receives('welcome');
      return { raw, id: key.id };
    };

    /** Asserts that a change closes the key's own connections, and no others. */
    const endsBy = async (raw: ReturnType<typeof connectRaw>, change: () => Promise<unknown>) => {
      const other = upgradeTo('plain', '/plain', [service.authorization]);
      await other.receives('welcome');
      await change();
      await raw.closed();
      other.send('still here');
      await other.receives('still here');
      other.socket.destroy();
    };

    for (const [loss, { lose, refused }] of Object.entries(LOSSES)) {
      it(`has lost what it needs: ${loss}`, async () => {
        const key = await createChild(service.keys, { permissions: [PERMISSION] });
        const raw = upgradeTo('plain', '/plain', [`Authorization: Bearer ${key.secret}`]);
        await raw.receives('welcome');
        await endsBy(raw, async () => lose(service, key));
      });

      it(`does not happen if its key has lost what it needs before the service agrees: ${loss}`, async () => {
        const key = await createChild(service.keys, { permissions: [PERMISSION] });
        beforeSwitch = async () => {
          await lose(service, key);
          await authenticate(service.keys, key.secret);
        };
        const raw = upgradeTo('plain', '/later', [`Authorization: Bearer ${key.secret}`]);
        await raw.closed();
        assert.match(raw.received, new RegExp(`^HTTP/1.1 ${refused} `));
        assert.ok(!raw.received.includes('welcome'));
        await until(() => ends[0]!.destroyed);
      });
    }

    it('is deleted', async () => {
      const { raw, id } = await openWith('Deleted');
      await endsBy(raw, () => service.keys.delete([id], OPERATOR));
    });

    it('is disabled', async () => {
      const { raw, id } = await openWith('Disabled');
      await endsBy(raw, () => service.keys.setEnabled(id, false, OPERATOR));
    });

    it('loses the permission', async () => {
      const { raw, id } = await openWith('Narrowed');
      await endsBy(raw, () => service.keys.update(id, { permissions: ['ME:READ_OWN'] }, OPERATOR));
    });

    it('expires', async () => {
      const { raw } = await openWith('Expiring', { expiresIn: '1h' });
      await endsBy(raw, async () => {
        service.time.now += 3_600_000;
      });
    });
  });
});
