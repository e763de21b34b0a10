import assert from 'node:assert/strict';
import type { Server } from 'node:net';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeOn } from '../../support/dialects.ts';
import { openTestKeys } from '../../support/keys.ts';
import { postgresStore } from '../../support/postgres.ts';
import { pairOf, writePair } from '../../support/certificates.ts';
import { CERTIFICATE, startTlsProxy } from '../../support/tls-proxy.ts';

describeOn('postgres', 'an encrypted connection', () => {
  let server: Server;
  let port: number;
  before(async () => {
    ({ server, port } = await startTlsProxy(Number(new URL(postgresStore()).port || 5432)));
  });
  after(() => {
    server.close();
  });
  const open = (host: string, parameters: Record<string, string>) => {
    const url = new URL(postgresStore());
    url.host = `${host}:${port}`;
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return openTestKeys({ asServer: true, database: url.href });
  };

  const nameOf = ({ sslmode, sslrootcert }: { sslmode?: string; sslrootcert?: string }) =>
    [sslmode, sslrootcert && 'sslrootcert'].filter(Boolean).join(' and ');

  for (const [host, parameters] of [
    ['localhost', { sslmode: 'verify-full', sslrootcert: CERTIFICATE }],
    ['localhost', { sslrootcert: CERTIFICATE }],
    ['127.0.0.1', { sslmode: 'verify-ca', sslrootcert: CERTIFICATE }],
    ['127.0.0.1', { sslmode: 'require' }],
    ['127.0.0.1', { sslmode: 'require', sslrootcert: CERTIFICATE }],
  ] as const) {
    it(`to ${host} is made with ${nameOf(parameters)}`, async () => {
      const { keys, store } = await open(host, parameters);
      await keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
      await store.close();
    });
  }

  for (const [what, host, parameters, message] of [
    ['an unknown authority', 'localhost', { sslmode: 'verify-full' }, /certificate of its server cannot be verified/],
    ['an unknown authority', 'localhost', { sslmode: 'verify-ca' }, /certificate of its server cannot be verified/],
    [
      'a certificate of another authority',
      'localhost',
      { sslmode: 'require', sslrootcert: writePair(pairOf('other')).cert },
      /certificate of its server cannot be verified/,
    ],
    [
      'another name',
      '127.0.0.1',
      { sslmode: 'verify-full', sslrootcert: CERTIFICATE },
      /certificate of its server cannot be verified/,
    ],
    [
      'a certificate that is not there',
      'localhost',
      { sslrootcert: '/nowhere.pem' },
      /certificate \/nowhere\.pem cannot be read/,
    ],
  ] as const) {
    it(`to a server with ${what} is refused with ${nameOf(parameters)}`, async () => {
      await assert.rejects(open(host, parameters), { code: 'STORE_UNAVAILABLE', message });
    });
  }

  it('never falls back to an unencrypted one', async () => {
    const url = new URL(postgresStore());
    url.searchParams.set('sslmode', 'require');
    await assert.rejects(openTestKeys({ asServer: true, database: url.href }), {
      code: 'STORE_UNAVAILABLE',
      message: /sslmode asks for encryption/,
    });
  });
});
