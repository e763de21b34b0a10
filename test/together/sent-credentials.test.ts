import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { byRoutes } from '../../src/features/guard/access.ts';
import { createRouter, type Route, type SentCredential, type Upstream } from '../../src/features/routes/index.ts';
import { requestLog } from '../../src/features/telemetry/request-log.ts';
import { type GuardedService, startGuarded } from '../features/guard/support/guard.ts';
import { connectRaw } from '../support/raw-connection.ts';
import { collectingLog } from '../support/log.ts';
import { freePort } from '../support/port.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const SECRET = 'up/stream+KEY=0123456789';
const PASSWORD = 'correct horse "battery" staple';

/** A request, as the service received it. */
interface Got {
  url: string;
  headers: Record<string, string | undefined>;
}

describe('the credentials of an upstream', () => {
  const folder = tempFolder();
  const secretFile = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  let service: GuardedService;
  const { log, lines } = collectingLog();
  let got: Got;
  const inHeader = (more: Partial<SentCredential> = {}): SentCredential => ({
    in: 'header',
    name: 'X-Api-Key',
    file: secretFile('key', `${SECRET}\n`),
    ...more,
  });

  before(async () => {
    // Echoes everything it receives, in the ways that real services do.
    service = await startGuarded((incoming, outgoing) => {
      got = { url: incoming.url!, headers: incoming.headers as Got['headers'] };
      const all = JSON.stringify({ url: incoming.url, headers: incoming.rawHeaders });
      const { pathname } = new URL(incoming.url!, 'http://a');
      const sent = incoming.headers['x-api-key'] ?? '';
      const encoded = encodeURIComponent(String(sent));
      if (pathname === '/redirect') outgoing.writeHead(302, { location: `/next?apikey=${encoded}&a=1` }).end();
      else if (pathname === '/login')
        outgoing
          .writeHead(302, { location: `/login?returnUrl=${encodeURIComponent(`/next?key=${encoded}`)}` })
          .end(`"${String(sent).replaceAll('+', '\\u002B').replaceAll('/', '\\/')}"`);
      else if (pathname === '/identity')
        outgoing.writeHead(200, { 'content-encoding': 'identity, Identity' }).end(sent);
      else if (pathname === '/headers')
        outgoing.writeHead(200, `Got ${String(sent)}`, { 'x-got': sent, 'set-cookie': [`k=${encoded}`] }).end();
      else if (pathname === '/trailers') {
        outgoing.writeHead(200, { trailer: 'X-Got', 'transfer-encoding': 'chunked' });
        outgoing.addTrailers({ 'X-Got': String(sent) });
        outgoing.end('body');
      } else if (pathname === '/pieces') {
        outgoing.write('<');
        const pieces = String(sent).split('');
        const next = () => {
          const piece = pieces.shift();
          if (piece === undefined) outgoing.end('>');
          else outgoing.write(piece, () => setImmediate(next));
        };
        next();
      } else outgoing.end(all);
    });
    service.upstream.on('upgrade', (incoming: IncomingMessage, socket) => {
      got = { url: incoming.url!, headers: incoming.headers as Got['headers'] };
      socket.on('error', () => {});
      const { 'x-api-key': sent } = incoming.headers;
      socket.end(`HTTP/1.1 101 Got\r\nConnection: upgrade\r\nUpgrade: websocket\r\nX-Got: ${String(sent)}\r\n\r\n`);
    });
  });
  after(() => service.stop());
  beforeEach(() => {
    lines.length = 0;
  });

  const get = (url: string, headers: Record<string, string> = {}) =>
    fetch(url, { headers: { authorization: `Bearer ${service.secret}`, ...headers }, redirect: 'manual' });
  const guarding = (send: readonly SentCredential[]) => service.beside({ send, log, watchers: [requestLog(log)] });

  it('are in a header, in place of what the caller sends in it, in any spelling', async () => {
    const url = await guarding([inHeader()]);
    await get(url, { 'x-api-key': 'forged', x_api_key: 'forged', accept: 'text/html' });
    assert.deepEqual(
      [got.headers['x-api-key'], got.headers['x_api_key'], got.headers['accept'], got.headers['authorization']],
      [SECRET, undefined, 'text/html', undefined],
    );
    await get(url);
    assert.equal(got.headers['x-api-key'], SECRET);
  });

  it('may stand after a scheme, in place of the key', async () => {
    const url = await guarding([inHeader({ name: 'Authorization', scheme: 'Bearer' })]);
    await get(url);
    assert.equal(got.headers['authorization'], `Bearer ${SECRET}`);
  });

  it('may be a user and a password by Basic', async () => {
    const send = [inHeader({ name: 'Authorization', user: 'admin', file: secretFile('password', PASSWORD) })];
    const url = await guarding(send);
    const said = await (await get(url)).text();
    const pair = Buffer.from(`admin:${PASSWORD}`).toString('base64');
    assert.equal(got.headers['authorization'], `Basic ${pair}`);
    assert.ok(!said.includes(pair) && said.includes(`Basic ${'*'.repeat(pair.length)}`), said);
  });

  it('are in the query, in place of what the caller sends by that name, in any spelling', async () => {
    const url = await guarding([inHeader({ in: 'query', name: 'apikey' })]);
    const own = `apikey=${encodeURIComponent(SECRET)}`;
    for (const [target, passed] of [
      ['/', `/?${own}`],
      ['/?', `/?${own}`],
      ['/a%20b?x=1&y=%zz&&z', `/a%20b?x=1&y=%zz&&z&${own}`],
      ['/?apikey=forged', `/?${own}`],
      ['/?x=1&APIKEY=forged&y=2;apikey=forged', `/?x=1&y=2&${own}`],
      ['/?%61pikey=forged&apikey[]=forged&apikey&apikeys=1', `/?apikeys=1&${own}`],
    ] as const) {
      const reply = await new Promise<IncomingMessage>((resolve) =>
        request(url, { path: target, headers: { authorization: `Bearer ${service.secret}` } }, resolve).end(),
      );
      reply.resume();
      assert.equal(got.url, passed, target);
      assert.ok(!(got.headers['x-forwarded-uri'] ?? '').includes(encodeURIComponent(SECRET)));
    }
  });

  it('are read anew when their file changes, and stay as they were while it cannot be read', async () => {
    const file = secretFile('changing', SECRET);
    const url = await guarding([inHeader({ file })]);
    const sends = async (secret: string) => {
      await until(async () => {
        await get(url);
        return got.headers['x-api-key'] === secret;
      });
    };
    await sends(SECRET);
    writeFileSync(file, 'another-0123456789');
    await sends('another-0123456789');
    writeFileSync(file, '');
    await until(async () => {
      await get(url);
      return lines.some(({ level }) => level === 'error');
    });
    assert.equal(got.headers['x-api-key'], 'another-0123456789');
    writeFileSync(file, 'the-third-0123456789');
    await sends('the-third-0123456789');
  });

  it('keep a guard from starting whose file is missing, empty, or open to others', async () => {
    const open = secretFile('open', SECRET);
    chmodSync(open, 0o644);
    for (const [file, code] of [
      [join(folder, 'missing'), 'CONFIG_UNAVAILABLE'],
      [secretFile('empty', ' \n'), 'CONFIG_INVALID'],
      [secretFile('lines', 'a\nb'), 'CONFIG_INVALID'],
      [open, 'CONFIG_INSECURE'],
    ] as const)
      await assert.rejects(guarding([inHeader({ file })]), { code });
  });

  describe('are never shown to the caller by a service that says all that it gets', () => {
    let url: string;
    before(async () => {
      const credentials = [
        inHeader(),
        inHeader({ in: 'query', name: 'apikey' }),
        inHeader({ name: 'X-Other', file: secretFile('password', PASSWORD) }),
      ];
      url = await guarding(credentials);
    });
    const FORMS = [SECRET, encodeURIComponent(SECRET), PASSWORD, JSON.stringify(PASSWORD).slice(1, -1)];
    const assertHidden = (text: string) => {
      for (const form of FORMS) assert.ok(!text.includes(form), text);
    };

    it('in a body, whose length stays', async () => {
      const reply = await get(`${url}/echo`);
      const said = await reply.text();
      assertHidden(said);
      assert.match(said, /"X-Api-Key","\*{24}"/);
      assert.equal(Number(reply.headers.get('content-length')), Buffer.byteLength(said));
    });

    it('in a body that comes byte by byte', async () => {
      assert.equal(await (await get(`${url}/pieces`)).text(), `<${'*'.repeat(SECRET.length)}>`);
    });

    it('in a redirect, which leads to the same place with the credential all the same', async () => {
      const location = (await get(`${url}/redirect`)).headers.get('location')!;
      assertHidden(location);
      await get(url + location);
      assert.equal(got.url, `/next?a=1&apikey=${encodeURIComponent(SECRET)}`);
    });

    it('in headers, cookies, the reason phrase and trailers', async () => {
      const reply = await get(`${url}/headers`);
      assertHidden([reply.statusText, ...[...reply.headers].flat()].join('\n'));
      assert.equal(reply.headers.get('x-got'), '*'.repeat(SECRET.length));
      const raw = connectRaw(url);
      raw.request('GET /trailers HTTP/1.1', 'Host: a', 'TE: trailers', 'Connection: TE, close', service.authorization);
      assert.match(await raw.receives(/X-Got: .*\r\n/), /X-Got: \*{24}\r\n/);
    });

    it('percent-encoded twice, or as frameworks write JSON', async () => {
      const reply = await get(`${url}/login`);
      assert.match(reply.headers.get('location')!, /^\/login\?returnUrl=%2Fnext%3Fkey%3D\*+$/);
      assert.match(await reply.text(), /^"\*+"$/);
    });

    it('in a body that says several times that it has no encoding', async () => {
      assert.equal(await (await get(`${url}/identity`)).text(), '*'.repeat(SECRET.length));
    });

    it('in ranges, which are not requested unless the operator says so', async () => {
      const parts = { range: 'bytes=9-19', 'if-range': '"a"', 'request-range': 'bytes=9-19', x_a: '1' };
      const rangesOf = () => ['range', 'if-range', 'request-range', 'x_a'].map((name) => got.headers[name]);
      await get(`${url}/echo`, parts);
      assert.deepEqual(rangesOf(), [undefined, undefined, undefined, '1']);
      await get(await service.beside({ send: [inHeader()], ranges: true }), parts);
      assert.deepEqual(rangesOf(), Object.values(parts));
      await get(service.url, parts);
      assert.deepEqual(rangesOf(), Object.values(parts));
    });

    it('compressed, which is not requested', async () => {
      await get(`${url}/echo`, { 'accept-encoding': 'gzip, br' });
      assert.equal(got.headers['accept-encoding'], 'identity');
    });

    it('when it switches to another protocol', async () => {
      const raw = connectRaw(url);
      const extensions = 'Sec-WebSocket-Extensions: permessage-deflate';
      raw.request(
        'GET /socket HTTP/1.1',
        'Host: a',
        'Connection: upgrade',
        'Upgrade: websocket',
        extensions,
        service.authorization,
      );
      assert.match(await raw.receives(/X-Got: .*\r\n/), /X-Got: \*{24}\r\n/);
      assert.deepEqual([got.headers['x-api-key'], got.headers['sec-websocket-extensions']], [SECRET, undefined]);
    });

    it('nor to readers of the log', async () => {
      await get(`${url}/echo`);
      await get(`${url}/redirect`, { authorization: 'Bearer wrong' });
      assertHidden(JSON.stringify(lines));
      assert.ok(lines.length > 0);
    });
  });

  it('are named in a warning where they are too short to be hidden', async () => {
    const file = secretFile('short', 'short');
    const url = await guarding([inHeader({ file })]);
    assert.deepEqual(
      lines.map(({ level, fields }) => ({ level, fields })),
      [{ level: 'warn', fields: { file } }],
    );
    assert.match(await (await get(`${url}/echo`, { 'accept-encoding': 'gzip' })).text(), /"X-Api-Key","short"/);
    assert.equal(got.headers['accept-encoding'], 'gzip');
  });
});

describe('several upstreams', () => {
  let service: GuardedService;
  const { log, lines } = collectingLog();
  const servers = ['wiki', 'files'].map((name) => createServer((_, outgoing) => outgoing.end(name)));
  let upstreams: Upstream[];
  const route = (path: string, more: Partial<Route>): Route => ({
    host: '*',
    path,
    allow: { kind: 'key' },
    preflightOpen: false,
    ...more,
  });
  before(async () => {
    service = await startGuarded((_, outgoing) => outgoing.end('otherwise'));
    upstreams = await Promise.all(
      ['wiki', 'files'].map(async (name, index) => {
        await once(servers[index]!.listen(0, '127.0.0.1'), 'listening');
        const { port } = servers[index]!.address() as AddressInfo;
        return { name, address: { protocol: 'http:', host: '127.0.0.1', port }, send: [], rewriteHost: false } as const;
      }),
    );
  });
  after(async () => {
    for (const server of servers) server.close().closeAllConnections();
    await service.stop();
  });

  const get = async (url: string, path: string) => {
    const reply = await fetch(url + path, { headers: { authorization: `Bearer ${service.secret}` } });
    return [reply.status, await reply.text()] as const;
  };

  it('get the requests of the routes that name them, also open ones; the others go to the default', async () => {
    const routes = [
      route('/wiki/**', { to: 'wiki' }),
      route('/files/**', { to: 'files', allow: { kind: 'open' } }),
      route('/**', {}),
    ];
    const requirements = byRoutes(createRouter(routes));
    const url = await service.beside({ requirements, upstreams, log, watchers: [requestLog(log)] });
    assert.deepEqual(
      [await get(url, '/wiki/a'), await get(url, '/files/b'), await get(url, '/c')],
      [
        [200, 'wiki'],
        [200, 'files'],
        [200, 'otherwise'],
      ],
    );
    const logged = lines.map(({ fields }) => (fields as { upstream?: string }).upstream);
    assert.deepEqual(logged, ['wiki', 'files', undefined]);
  });

  it('fail each by itself, and the log names it', async () => {
    const address = { protocol: 'http:', host: '127.0.0.1', port: await freePort() } as const;
    const gone: Upstream = { ...upstreams[0]!, name: 'gone', address };
    const routes = [route('/gone', { to: 'gone' }), route('/wiki', { to: 'wiki' })];
    lines.length = 0;
    const requirements = byRoutes(createRouter(routes));
    const url = await service.beside({ requirements, upstreams: [...upstreams, gone], log });
    assert.deepEqual([(await get(url, '/gone'))[0], (await get(url, '/wiki'))[0]], [502, 200]);
    assert.deepEqual(
      lines.map(({ message }) => message),
      ['the upstream "gone" did not answer'],
    );
  });
});
