import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { readPostgresUrl } from '../../../src/store/postgres-address.ts';
import { CERTIFICATE } from '../../support/tls-proxy.ts';

describe('the URL of a PostgreSQL store', () => {
  it('is shown without its password', () => {
    const { location, config } = readPostgresUrl(
      'postgres://me:p%40ss%2Fword@db.example:5433/keys?schema=svc&pool_size=3&connect_timeout=7',
    );
    assert.equal(location, 'postgres://me@db.example:5433/keys?schema=svc');
    const { user, password, host, port, database, options, max, connectionTimeoutMillis } = config;
    assert.deepEqual(
      { user, password, host, port, database, options, max, connectionTimeoutMillis },
      {
        user: 'me',
        password: 'p@ss/word',
        host: 'db.example',
        port: 5433,
        database: 'keys',
        options: '-c search_path=svc,pg_temp',
        max: 3,
        connectionTimeoutMillis: 7000,
      },
    );
  });

  it('may be of a socket, or of an IPv6 address', () => {
    assert.equal(readPostgresUrl('postgresql:///keys?host=/var/run/postgresql').config.host, '/var/run/postgresql');
    assert.equal(readPostgresUrl('postgresql://[::1]/keys').config.host, '::1');
  });

  for (const [what, parameters, expected] of [
    ['encrypted by default, with the server that is meant', '', [true, false]],
    ['not encrypted', '?sslmode=disable', false],
    ['encrypted', '?sslmode=require', [false, true]],
    ['encrypted, with a server of a known authority', '?sslmode=verify-ca', [true, true]],
    ['encrypted, with the server that is meant', '?sslmode=verify-full', [true, false]],
    ['encrypted, with a server of the authority', `?sslmode=require&sslrootcert=${CERTIFICATE}`, [true, true]],
    ['encrypted, with the server of a public authority', '?sslmode=verify-full&sslrootcert=system', [true, false]],
  ] as const) {
    it(`says that the connection is ${what}`, () => {
      const { ssl } = readPostgresUrl(`postgres://host/db${parameters}`).config;
      const said = typeof ssl === 'object' ? [ssl.rejectUnauthorized, 'checkServerIdentity' in ssl] : ssl;
      assert.deepEqual(said, expected);
    });
  }

  for (const [what, url] of [
    ['a "#" in the password', 'postgres://me:hunter#2@host/db'],
    ['a "/" in the password', 'postgres://me:1/hunter2@host/db'],
    ['a "/" in the password and no database', 'postgres://me:1/hunter2@host'],
    ['a "%" in the password', 'postgres://me:hunter%2@host/db'],
    ['a port that is none', 'postgres://me:hunter2@host:port/db'],
    ['a parameter that is unknown', 'postgres://me:hunter2@host/db?password=hunter2'],
    ['a parameter that is no number', 'postgres://me:hunter2@host/db?pool_size=hunter2'],
    ['a schema that would have to be quoted', 'postgres://me:hunter2@host/db?schema=hunter2;drop'],
    ['a mode of TLS that is unknown', 'postgres://me:hunter2@host/db?sslmode=prefer'],
    ['a mode of TLS of other programs', 'postgres://me:hunter2@host/db?sslmode=no-verify'],
    ['any server of a public authority', 'postgres://me:hunter2@host/db?sslmode=require&sslrootcert=system'],
  ] as const) {
    it(`is refused with ${what}, and not repeated`, () => {
      assert.throws(
        () => readPostgresUrl(url),
        (error: Error & { code: string }) => {
          assert.equal(error.code, 'USAGE');
          assert.doesNotMatch(error.message, /hunter/);
          return true;
        },
      );
    });
  }

  for (const host of ['localhost', '127.0.0.1', '127.3.2.1', '[::1]', 'LOCALHOST'])
    it(`needs no encryption to ${host}`, () => {
      for (const mode of ['', '?sslmode=prefer', '?sslmode=allow'])
        assert.equal(readPostgresUrl(`postgres://${host}/db${mode}`, {}).config.ssl, false);
    });

  it('needs no encryption to a Unix socket, of the URL or of PGHOST', () => {
    assert.equal(readPostgresUrl('postgres:///db?host=/run/postgresql', {}).config.ssl, false);
    assert.equal(readPostgresUrl('postgres:///db', { PGHOST: '/run/postgresql' }).config.ssl, false);
  });

  for (const host of [
    'db.example',
    '10.0.0.7',
    '0.0.0.0',
    '127.0.0.1.example',
    '[::ffff:10.0.0.1]',
    'localhost.example',
  ])
    it(`asks ${host} for its certificate`, () => {
      const { ssl } = readPostgresUrl(`postgres://${host}/db`, {}).config;
      assert.ok(typeof ssl === 'object' && ssl.rejectUnauthorized && !ssl.checkServerIdentity);
    });

  it('asks the server of PGHOST for its certificate', () => {
    assert.ok(readPostgresUrl('postgres:///db', { PGHOST: 'db.example' }).config.ssl);
  });

  it("takes the TLS mode and the certificates from libpq's variables, if it has none itself", () => {
    const read = (parameters: string, env: NodeJS.ProcessEnv) =>
      readPostgresUrl(`postgres://db.example/db${parameters}`, env).config.ssl;
    assert.equal(read('', { PGSSLMODE: 'disable' }), false);
    assert.notEqual(read('?sslmode=verify-full', { PGSSLMODE: 'disable' }), false);
    const files = { PGSSLROOTCERT: CERTIFICATE, PGSSLCERT: CERTIFICATE, PGSSLKEY: CERTIFICATE, PGSSLPASSWORD: 'x' };
    const content = readFileSync(CERTIFICATE, 'utf8');
    const { ca, cert, key, passphrase } = read('', files) as ConnectionOptions;
    assert.deepEqual({ ca, cert, key, passphrase }, { ca: content, cert: content, key: content, passphrase: 'x' });
    assert.throws(() => read('', { PGSSLROOTCERT: '/nowhere.pem' }), { code: 'STORE_UNAVAILABLE' });
  });

  it('takes timeout and application name from them, too', () => {
    const { config } = readPostgresUrl('postgres://localhost/db', { PGCONNECT_TIMEOUT: '7', PGAPPNAME: 'deploy' });
    assert.deepEqual([config.connectionTimeoutMillis, config.application_name], [7000, 'deploy']);
  });

  for (const mode of ['prefer', 'allow', 'verify', ''])
    it(`is refused off this machine with PGSSLMODE=${mode || 'prefer by the URL'}`, () => {
      const [parameters, env] = mode ? ['', { PGSSLMODE: mode }] : ['?sslmode=prefer', {}];
      assert.throws(() => readPostgresUrl(`postgres://db.example/db${parameters}`, env), {
        code: 'USAGE',
        message: /Write sslmode=verify-full\.$/,
      });
    });

  for (const name of ['PGSERVICE', 'PGTARGETSESSIONATTRS', 'PGHOSTADDR', 'PGREQUIREAUTH', 'PGSSLCRL'])
    it(`is refused with ${name}, which would be ignored`, () => {
      assert.throws(() => readPostgresUrl('postgres://localhost/db', { [name]: 'x' }), {
        code: 'USAGE',
        message: new RegExp(`^${name} is set, which svc-api does not support`),
      });
    });
});
