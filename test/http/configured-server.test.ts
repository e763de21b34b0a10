import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { connect } from 'node:tls';
import type { Config } from '../../src/config/config.ts';
import { defaultConfig } from '../../src/config/default-config.ts';
import { vocabularyOf } from '../../src/keys/permissions/index.ts';
import { ConfiguredServer } from '../../src/service/configured-server.ts';
import { serveApp } from '../../src/service/create-app.ts';
import type { SchemaExtension } from '../../src/graphql/extension.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { type OpenKeys, openKeys } from '../../src/service/open-keys.ts';
import { pairOf, writePair } from '../support/certificates.ts';
import { collectingLog } from '../support/log.ts';
import { query } from '../support/server.ts';
import { tempFolder, tempStore } from '../support/temp.ts';

const WIKI: SchemaExtension = {
  typeDefs: 'extend type Query { pages: [String!] @requires(resource: WIKI, action: READ_ANY) }',
  resolvers: { Query: { pages: () => ['Start'] } },
};
const [FIRST, OTHER] = [pairOf('first'), pairOf('other')];

describe('a server whose configuration changes', () => {
  let keys: OpenKeys;
  let configured: ConfiguredServer | undefined;
  const { log, lines } = collectingLog();
  const withWiki: Config = { ...defaultConfig(), resources: ['WIKI'] };
  const start = async (config: Config, extensions: SchemaExtension[] = []) => {
    keys = await openKeys({ database: tempStore(), resources: config.resources });
    const server = { host: '127.0.0.1', port: 0, log };
    configured = await ConfiguredServer.start(
      { keys, config, extensions, ofHost: vocabularyOf(...extensions) },
      server,
      serveApp({ console: false }),
    );
    return { running: configured.service.server };
  };
  const secretOf = async () => (await keys.create({ name: 'Admin', roles: ['ADMIN'] }, OPERATOR)).key;
  beforeEach(() => void (lines.length = 0));
  afterEach(async () => {
    await configured?.service.server.stop(0);
    await keys.close();
    configured = undefined;
  });

  it('keeps the one that it has if the schema, or the certificate, would be invalid by another', async () => {
    const { running } = await start(withWiki, [WIKI]);
    const secret = await secretOf();
    const pages = async () => (await query(running.url, secret, '{ pages }')).body.data;
    await assert.rejects(configured!.take(defaultConfig()), { code: 'SCHEMA_INVALID' });
    assert.deepEqual(await pages(), { pages: ['Start'] });
    await configured!.take({ ...withWiki, resources: ['WIKI', 'BOOK'] });
    assert.deepEqual(await pages(), { pages: ['Start'] });
    assert.ok(configured!.keys.catalog.resources.includes('BOOK') && configured!.keys !== keys);
  });

  it('takes the places of keys, the allowed origins, and who may see the schema', async () => {
    const { running } = await start(defaultConfig());
    const secret = await secretOf();
    const ask = async () => {
      const headers = { 'x-api-key': secret, origin: 'https://app.example', 'content-type': 'application/json' };
      const body = '{"query":"{ __schema { queryType { name } } }"}';
      const response = await fetch(`${running.url}/graphql`, { method: 'POST', headers, body });
      const { errors } = (await response.json()) as { errors?: object[] };
      return [response.status, response.headers.get('access-control-allow-origin'), errors?.length];
    };
    assert.deepEqual(await ask(), [401, null, 1]);
    const cors = { origins: ['https://app.example'] };
    await configured!.take({ ...defaultConfig(), credentials: [{ header: 'x-api-key' }], cors });
    assert.deepEqual(await ask(), [200, 'https://app.example', undefined]);
    await configured!.take({ ...defaultConfig(), credentials: [{ header: 'x-api-key' }], introspection: 'off' });
    assert.deepEqual((await ask())[2], 1);
  });

  it('takes a certificate from other files, and says that TLS ends with the next start', async () => {
    const folder = tempFolder();
    const { running } = await start({ ...defaultConfig(), tls: writePair(FIRST) });
    const serialOf = async () => {
      const { port } = new URL(running.url);
      const socket = connect({ port: Number(port), servername: 'localhost', ca: [FIRST.cert, OTHER.cert] });
      await once(socket, 'secureConnect');
      const { serialNumber } = socket.getPeerCertificate();
      socket.destroy();
      return serialNumber;
    };
    const first = await serialOf();
    await assert.rejects(configured!.take({ ...withWiki, tls: { cert: join(folder, 'a'), key: join(folder, 'b') } }), {
      code: 'TLS_INVALID',
    });
    assert.deepEqual([await serialOf(), configured!.keys.catalog.resources.includes('WIKI')], [first, false]);
    await configured!.take({ ...defaultConfig(), tls: writePair(OTHER, folder) });
    assert.notEqual(await serialOf(), first);
    assert.equal(lines.length, 0);
    await configured!.take(withWiki);
    assert.deepEqual(
      lines.map(({ message }) => message),
      ['TLS begins or ends with the next start; everything else was loaded'],
    );
  });

  it('says that what only tunes it changes with the next start', async () => {
    await start({ ...defaultConfig(), server: { keepAlive: 90 } });
    await configured!.take({ ...withWiki, server: { keepAlive: 90 } });
    assert.equal(lines.length, 0);
    await configured!.take({ ...defaultConfig(), server: { keepAlive: 60 } });
    assert.equal(
      lines.at(-1)?.message,
      'a changed "server" takes effect with the next start; everything else was loaded',
    );
  });

  it('says that TLS begins with the next start', async () => {
    await start(defaultConfig());
    await configured!.take({ ...withWiki, tls: writePair(FIRST) });
    assert.ok(configured!.keys.catalog.resources.includes('WIKI'));
    assert.equal(lines.at(-1)?.message, 'TLS begins or ends with the next start; everything else was loaded');
  });
});
