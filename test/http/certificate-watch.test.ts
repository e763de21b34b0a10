import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { connect } from 'node:tls';
import { type CertificateFiles, CertificateWatch } from '../../src/http/certificate.ts';
import { pairOf, writePair } from '../support/certificates.ts';
import { collectingLog } from '../support/log.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const [FIRST, OTHER] = [pairOf('first'), pairOf('other')];
const PERIOD_MS = 10;

describe('a certificate whose files change', () => {
  const { log, lines } = collectingLog();
  const ends: (() => void)[] = [];
  beforeEach(() => void (lines.length = 0));
  afterEach(() => {
    for (const end of ends.splice(0)) end();
  });

  async function start(files: CertificateFiles): Promise<Server> {
    const watch = new CertificateWatch(files, log, (work) => void setTimeout(work, PERIOD_MS).unref());
    const server = createServer(watch.read()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    watch.start(server);
    ends.push(
      () => watch.end(),
      () => server.close(),
    );
    return server;
  }

  async function serialOf(server: Server): Promise<string> {
    const { port } = server.address() as AddressInfo;
    const socket = connect({ port, servername: 'localhost', ca: [FIRST.cert, OTHER.cert] });
    await once(socket, 'secureConnect');
    const { serialNumber } = socket.getPeerCertificate();
    socket.destroy();
    return serialNumber;
  }

  it('is taken anew whether they are written over, moved, or linked', async () => {
    const [written, moved] = [writePair(FIRST), writePair(FIRST)];
    const folder = tempFolder();
    for (const [name, pair] of [
      ['one', FIRST],
      ['two', OTHER],
    ] as const) {
      mkdirSync(join(folder, name));
      writePair(pair, join(folder, name));
    }
    symlinkSync('one', join(folder, 'now'));
    const linked = { cert: join(folder, 'now/cert.pem'), key: join(folder, 'now/key.pem') };
    const changes: [files: CertificateFiles, change: () => void][] = [
      [written, () => writePair(OTHER, dirname(written.cert))],
      [
        moved,
        () => {
          const next = writePair(OTHER);
          renameSync(next.key, moved.key);
          renameSync(next.cert, moved.cert);
        },
      ],
      [
        linked,
        () => {
          symlinkSync('two', join(folder, 'next'));
          renameSync(join(folder, 'next'), join(folder, 'now'));
        },
      ],
    ];
    for (const [files, change] of changes) {
      const server = await start(files);
      const before = await serialOf(server);
      change();
      await until(async () => (await serialOf(server)) !== before);
    }
    assert.deepEqual(
      lines.map(({ level }) => level),
      ['info', 'info', 'info'],
    );
  });

  it('stays as it was while they cannot be used, and the log says why, once', async () => {
    const files = writePair(FIRST);
    const server = await start(files);
    const before = await serialOf(server);
    const problems: [change: () => void, reason: RegExp][] = [
      [() => writeFileSync(files.cert, OTHER.cert), /key\.pem is not the key of the certificate in .*cert\.pem\.$/],
      [() => writeFileSync(files.cert, OTHER.cert.slice(0, 300)), /cert\.pem does not begin with a certificate/],
      [() => writeFileSync(files.cert, ''), /cert\.pem does not begin with a certificate/],
      [() => rmSync(files.cert), /cert\.pem does not exist\.$/],
      [() => (chmodSync(files.key, 0o644), writePair(OTHER, dirname(files.cert))), /key\.pem can be read or changed/],
    ];
    for (const [index, [change, reason]] of problems.entries()) {
      change();
      await until(() => lines.length > index);
      const { message, fields } = lines[index]!;
      assert.equal(message, 'the certificate has changed, but cannot be used: new connections get the old one');
      assert.match((fields as { err: Error }).err.message, reason);
      assert.equal(await serialOf(server), before);
    }
    chmodSync(files.key, 0o600);
    await until(async () => (await serialOf(server)) !== before);
    assert.equal(lines.length, problems.length + 1);
  });
});
