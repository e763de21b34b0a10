import assert from 'node:assert/strict';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { storeLocation } from '../../src/store/location.ts';

const HOME_DEFAULT = join(homedir(), '.local', 'share', 'svc-api', 'keys.sqlite');

describe('the location of the store', () => {
  const cases: [what: string, database: string | undefined, env: NodeJS.ProcessEnv, expected: string][] = [
    ['is the given path before all', '/a/b.sqlite', { SVC_API_DATABASE: '/c', XDG_DATA_HOME: '/d' }, '/a/b.sqlite'],
    ['is made absolute', 'b.sqlite', {}, resolve('b.sqlite')],
    ['is SVC_API_DATABASE before the default', undefined, { SVC_API_DATABASE: '/c', XDG_DATA_HOME: '/d' }, '/c'],
    [
      'ignores an empty SVC_API_DATABASE',
      undefined,
      { SVC_API_DATABASE: '', XDG_DATA_HOME: '/d' },
      '/d/svc-api/keys.sqlite',
    ],
    ["is in the user's data folder otherwise", undefined, { XDG_DATA_HOME: '/d' }, '/d/svc-api/keys.sqlite'],
    ['ignores a relative XDG_DATA_HOME, as the standard asks', undefined, { XDG_DATA_HOME: 'd' }, HOME_DEFAULT],
    ['is in ~/.local/share without XDG_DATA_HOME', undefined, {}, HOME_DEFAULT],
    ['may hold spaces and a colon', '/a b/c:d.sqlite', {}, '/a b/c:d.sqlite'],
  ];
  for (const [what, database, env, expected] of cases) {
    it(what, () => {
      assert.equal(storeLocation(database, env), expected);
    });
  }

  for (const [HOME, reason] of [
    ['', 'HOME is ""'],
    ['.', 'HOME is "."'],
    ['me', 'HOME is "me"'],
  ] as const) {
    it(`is not in the working directory where ${reason}`, () => {
      assert.throws(() => storeLocation(undefined, { HOME }), {
        code: 'USAGE',
        message: `The key store has no default path: it would be in the home folder, but ${reason}. Set HOME, or pass --database <path>.`,
      });
      assert.equal(storeLocation(undefined, { HOME, XDG_DATA_HOME: '/d' }), '/d/svc-api/keys.sqlite');
    });
  }

  for (const database of ['', ' ', 'a\0b']) {
    it(`may not be ${JSON.stringify(database)}`, () => {
      assert.throws(() => storeLocation(database, {}), { code: 'USAGE' });
    });
  }

  it('may be the address of a PostgreSQL database', () => {
    assert.equal(storeLocation('postgres://me@host/db', {}), 'postgres://me@host/db');
    assert.equal(storeLocation(undefined, { SVC_API_DATABASE: 'PostgreSQL://host/db' }), 'PostgreSQL://host/db');
  });

  it('may be no other address, whose password is not repeated', () => {
    assert.throws(
      () => storeLocation('mysql://user:hunter2@host/db', {}),
      (error: Error & { code: string }) => {
        assert.equal(error.code, 'USAGE');
        assert.match(error.message, /a mysql address is not supported/);
        assert.doesNotMatch(error.message, /hunter2/);
        return true;
      },
    );
  });
});
