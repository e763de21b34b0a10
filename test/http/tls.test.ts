import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { connect as connectPlainly } from 'node:net';
import { dirname } from 'node:path';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { createApp } from '../../src/service/create-app.ts';
import type { CertificateFiles } from '../../src/http/certificate.ts';
import { listen, type RunningServer } from '../../src/http/listen.ts';
import { pairOf, writePair } from '../support/certificates.ts';
import { closed, readToEnd } from '../support/client.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { collectingLog } from '../support/log.ts';
import { until } from '../support/until.ts';

const [FIRST, OTHER] = [pairOf('first'), pairOf('other')];

describe('TLS', () => {
  let open: TestKeys;
  let secret: string;
  const { log, lines } = collectingLog();
  const running: RunningServer[] = [];
  const sockets: TLSSocket[] = [];

  before(async () => {
    open = await openTestKeys();
    ({ secret } = await createPrincipal(open.keys, { name: 'Guest', roles: ['GUEST'] }));
  });
  after(() => open.store.close());
  beforeEach(() => void (lines.length = 0));
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await Promise.all(running.splice(0).map((server) => server.stop(0)));
  });

  async function start(tls: CertificateFiles = writePair(FIRST)): Promise<RunningServer> {
    const app = await createApp({ keys: open.keys });
    const server = await listen({ app, host: '127.0.0.1', port: 0, tls, log });
    running.push(server);
    return server;
  }

  /** A connection after its handshake. */
  async function handshake(url: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
    const socket = connect({
      port: Number(new URL(url).port),
      servername: 'localhost',
      ca: [FIRST.cert, OTHER.cert],
      ...options,
    });
    sockets.push(socket);
    await once(socket, 'secureConnect');
    return socket.on('error', () => {});
  }
  const serialOf = async (url: string) => (await handshake(url)).getPeerCertificate().serialNumber;

  it('is spoken in place of plain HTTP, with the same answers, by Node and by Hono', async () => {
    const { url } = await start();
    assert.match(url, /^https:\/\/127\.0\.0\.1:\d+$/);
    for (const accept of ['*/*', 'text/html']) {
      const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json', accept };
      const options = { method: 'POST', headers, ca: FIRST.cert, servername: 'localhost', agent: false };
      const sent = request(`${url}/graphql`, options).end('{"query":"{ online }"}');
      const [reply] = (await once(sent, 'response')) as [IncomingMessage];
      let text = '';
      for await (const chunk of reply.setEncoding('utf8')) text += String(chunk);
      const expected = accept === '*/*' ? [200, '{"data":{"online":true}}'] : [406, text];
      assert.deepEqual([reply.statusCode, text], expected);
    }
  });

  it('is 1.2 or later, without HTTP/2', async () => {
    const { url } = await start();
    for (const [version, ciphers] of [
      ['TLSv1', 'ALL:@SECLEVEL=0'],
      ['TLSv1.1', 'ALL:@SECLEVEL=0'],
    ] as const)
      await assert.rejects(handshake(url, { minVersion: version, maxVersion: version, ciphers }), version);
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const socket = await handshake(url, { maxVersion: version, ALPNProtocols: ['h2', 'http/1.1'] });
      assert.deepEqual([socket.getProtocol(), socket.alpnProtocol], [version, 'http/1.1']);
    }
  });

  it('takes a certificate anew, and serves connections that are open', async () => {
    const files = writePair(FIRST);
    const { url } = await start(files);
    const kept = await handshake(url);
    writePair(OTHER, dirname(files.cert));
    await until(async () => (await serialOf(url)) === new X509Certificate(OTHER.cert).serialNumber);
    kept.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    assert.match(String((await once(kept, 'data'))[0]), /^HTTP\/1\.1 200 OK/);
    assert.deepEqual(lines, [
      { level: 'info', fields: files, message: 'the certificate has changed: new connections get the new one' },
    ]);
  });

  const encrypted = createPrivateKey(FIRST.key).export({
    type: 'pkcs8',
    format: 'pem',
    cipher: 'aes-256-cbc',
    passphrase: 'hunter2',
  }) as string;
  const wrong: [what: string, spoil: (files: CertificateFiles) => void, reason: RegExp][] = [
    ['no certificate', ({ cert }) => rmSync(cert), /cert\.pem does not exist\.$/],
    ['no key', ({ key }) => rmSync(key), /key\.pem does not exist\.$/],
    [
      'a certificate that is none',
      ({ cert }) => writeFileSync(cert, 'x'),
      /cert\.pem does not begin with a certificate in PEM/,
    ],
    ['a key that is none', ({ key }) => writeFileSync(key, 'x'), /key\.pem is not a private key in PEM/],
    [
      'a certificate in place of the key',
      ({ key }) => writeFileSync(key, FIRST.cert),
      /key\.pem is not a private key in PEM/,
    ],
    ['a key in place of the certificate', ({ cert }) => writeFileSync(cert, FIRST.key), /cert\.pem does not begin/],
    [
      'the key of another certificate',
      ({ key }) => writeFileSync(key, OTHER.key),
      /key\.pem is not the key of the certificate/,
    ],
    ['an encrypted key', ({ key }) => writeFileSync(key, encrypted), /key\.pem is encrypted\. Remove its passphrase/],
    [
      'a broken chain',
      ({ cert }) => writeFileSync(cert, FIRST.cert + OTHER.cert.replace('MII', '###')),
      /cert\.pem cannot be used/,
    ],
    ['a folder', ({ key }) => (rmSync(key), mkdirSync(key)), /key\.pem is not a file/],
    [
      'a key that others may read',
      ({ key }) => chmodSync(key, 0o604),
      /key\.pem can be read or changed by other users\. Run chmod 600/,
    ],
    [
      'a key that its group may write',
      ({ key }) => chmodSync(key, 0o660),
      /key\.pem can be read or changed by other users/,
    ],
  ];
  for (const [what, spoil, reason] of wrong) {
    it(`does not start with ${what}, and says so`, async () => {
      const files = writePair(FIRST);
      spoil(files);
      await assert.rejects(start(files), { code: 'TLS_INVALID', message: reason });
    });
  }

  it('takes a key that its group may read, as a system keeps keys for its services', async () => {
    const files = writePair(FIRST);
    chmodSync(files.key, 0o640);
    await start(files);
  });

  it('does not answer plain HTTP, and waits for no such client when it stops', async () => {
    const server = await start();
    const port = Number(new URL(server.url).port);
    const plain = connectPlainly(port, '127.0.0.1').on('error', () => {});
    plain.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    assert.doesNotMatch(await readToEnd(plain), /HTTP/);
    // One within its handshake, one after it, and one after an answer.
    const begun = connectPlainly(port, '127.0.0.1').on('error', () => {});
    await once(begun, 'connect');
    begun.write(Buffer.from([0x16, 0x03, 0x01]));
    const silent = await handshake(server.url);
    const idle = await handshake(server.url);
    idle.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(idle, 'data');
    const arriving = await handshake(server.url);
    arriving.write('GET /healthz HTTP/1.1\r\nHost:');
    // The answer on another connection proves that this was read.
    idle.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(idle, 'data');
    const stopped = server.stop(600_000);
    await Promise.all([begun, silent, idle].map((socket) => closed(socket)));
    arriving.write(' x\r\n\r\n');
    assert.match(String((await once(arriving, 'data'))[0]), /^HTTP\/1\.1 200 OK/);
    await stopped;
  });
});
