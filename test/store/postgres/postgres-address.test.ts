import assert from 'node:assert/strict';
import { readPostgresUrl } from '../../../src/store/postgres/postgres-address.ts';

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
        options: '-c search_path=svc',
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
    ['not encrypted by default', '', false],
    ['not encrypted', '?sslmode=disable', false],
    ['encrypted', '?sslmode=require', [false, true]],
    ['encrypted, with a server of a known authority', '?sslmode=verify-ca', [true, true]],
    ['encrypted, with the server that is meant', '?sslmode=verify-full', [true, false]],
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
});
