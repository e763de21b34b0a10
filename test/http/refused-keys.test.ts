import assert from 'node:assert/strict';
import { existsSync, renameSync } from 'node:fs';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal, openTestKeys } from '../support/keys.ts';
import { collectingLog, withoutRequestId } from '../support/log.ts';
import { query, startTestService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

describeOnEach('a key', (dialect) => {
  let test: TestService;
  const { log, lines } = collectingLog();

  beforeEach(async () => {
    test = await startTestService({ log });
    lines.length = 0;
  });
  afterEach(() => test.stop());

  it('that is unknown, deleted, mistyped or invalid is refused in the same way; the log distinguishes them', async () => {
    const elsewhere = await openTestKeys();
    const { key: unknown } = await elsewhere.keys.create({ name: 'Unknown', roles: ['ADMIN'] }, OPERATOR);
    await elsewhere.store.close();
    const deleted = await test.keys.create({ name: 'Deleted', roles: ['ADMIN'] }, OPERATOR);
    await test.keys.delete([deleted.apiKey.id], OPERATOR);
    const { key: good } = await test.keys.create({ name: 'Good', roles: ['ADMIN'] }, OPERATOR);
    const last = good.endsWith('0') ? '1' : '0';
    const bad = [
      unknown,
      deleted.key,
      good.slice(0, -1) + last,
      good.slice(0, -1),
      `${good}0`,
      good.toUpperCase(),
      'svc_',
      'x',
      '"'.repeat(99),
    ];

    const answers = [];
    for (const secret of bad) {
      const { status, headers, body } = await query(test.url, secret, '{ online }');
      answers.push({
        status,
        headers: [...headers].filter(([name]) => name !== 'date' && name !== 'x-request-id'),
        body,
      });
    }
    assert.deepEqual(answers[0]!.status, 401);
    assert.deepEqual(
      Object.fromEntries(answers[0]!.headers)['www-authenticate'],
      'Bearer realm="svc-api", error="invalid_token"',
    );
    assert.deepEqual(Object.fromEntries(answers[0]!.headers)['cache-control'], 'no-store');
    assert.deepEqual(answers[0]!.body, {
      errors: [{ message: 'The API key is not valid.', extensions: { code: 'UNAUTHENTICATED' } }],
    });
    for (const answer of answers) assert.deepEqual(answer, answers[0]);

    const refusals = lines
      .filter(({ message }) => message === 'key refused')
      .map(({ fields }) => withoutRequestId(fields) as { reason?: string });
    assert.deepEqual(refusals.slice(0, 2), [
      { reason: 'unknown', prefix: `${unknown.slice(0, 16)}_…`, address: '127.0.0.1' },
      { reason: 'unknown', prefix: `${deleted.key.slice(0, 16)}_…`, address: '127.0.0.1' },
    ]);
    assert.deepEqual(refusals.slice(2), [{ reason: 'malformed', prefix: undefined, address: '127.0.0.1' }]);
  });

  it('that is disabled or has expired is answered the same, and the log says which key, and why', async () => {
    const disabled = await test.keys.create({ name: 'Disabled', roles: ['ADMIN'] }, OPERATOR);
    await test.keys.setEnabled(disabled.apiKey.id, false, OPERATOR);
    const expired = await test.keys.create({ name: 'Expired', roles: ['ADMIN'], expiresIn: '1m' }, OPERATOR);
    test.time.now += 60_000;
    const answers = [];
    for (const secret of [disabled.key, expired.key, `svc_${'0'.repeat(40)}`]) {
      const { status, headers, body } = await query(test.url, secret, '{ online }');
      answers.push([status, headers.get('www-authenticate'), body]);
    }
    for (const answer of answers) assert.deepEqual(answer, answers[2]);
    const refusals = lines
      .filter(({ message }) => message === 'key refused')
      .map(({ fields }) => withoutRequestId(fields) as { reason?: string });
    assert.deepEqual(refusals.slice(0, 2), [
      { reason: 'disabled', prefix: `${disabled.key.slice(0, 16)}_…`, address: '127.0.0.1' },
      { reason: 'expired', prefix: `${expired.key.slice(0, 16)}_…`, address: '127.0.0.1' },
    ]);
  });

  // On PostgreSQL this takes some milliseconds, and no file can be removed: see
  // test/processes/store/postgres-servers.test.ts.
  if (dialect === 'postgres') return;

  it('that another process changes or deletes is changed or refused from the next request on', async () => {
    const other = await openTestKeys({ database: test.store.location });
    const { key: secret, apiKey: key } = await other.keys.create({ name: 'Changing', roles: ['GUEST'] }, OPERATOR);
    const codes = async () =>
      (await query(test.url, secret, '{ online info { name } }')).body.errors?.map(
        ({ extensions }) => extensions['code'],
      );
    for (let round = 0; round < 5; round += 1) {
      assert.deepEqual(await codes(), ['FORBIDDEN']);
      await other.keys.update(key.id, { roles: ['VIEWER'] }, OPERATOR);
      assert.deepEqual(await codes(), undefined);
      await other.keys.update(key.id, { roles: ['GUEST'] }, OPERATOR);
    }
    await other.keys.delete([key.id], OPERATOR);
    assert.deepEqual(await codes(), ['UNAUTHENTICATED']);
    const again = await other.keys.create({ name: 'Changing', roles: ['VIEWER'] }, OPERATOR);
    await other.keys.create({ name: 'Changing', roles: ['VIEWER'], overwrite: true }, OPERATOR);
    assert.equal((await query(test.url, again.key, '{ online }')).status, 401);
    await other.store.close();
  });

  it('is refused while the store is gone, and accepted again when it is back', async () => {
    const { secret } = await createPrincipal(test.keys, { name: 'Waiting', roles: ['GUEST'] });
    assert.equal((await query(test.url, secret, '{ online }')).status, 200);
    const { location } = test.store;
    renameSync(location, `${location}.away`);
    // The last check of the file is trusted for a moment.
    await until(() =>
      test.keys.store.check().then(
        () => false,
        () => true,
      ),
    );
    for (let request = 0; request < 3; request += 1) {
      const { status, headers, body } = await query(test.url, secret, '{ online }');
      assert.deepEqual(
        [status, headers.get('www-authenticate'), headers.get('retry-after'), headers.get('cache-control')],
        [503, null, '1', 'no-store'],
      );
      assert.deepEqual(body, {
        errors: [
          {
            message: 'The service cannot check keys at the moment. Try again later.',
            extensions: { code: 'SERVICE_UNAVAILABLE' },
          },
        ],
      });
    }
    assert.equal((await fetch(`${test.url}/readyz`)).status, 503);
    assert.equal((await fetch(`${test.url}/healthz`)).status, 200);
    assert.equal(existsSync(location), false, 'no empty store is put in its place');
    const said = lines.filter(({ message }) => message === 'the store did not answer');
    assert.deepEqual(
      said.map(({ level }) => level),
      ['error'],
      'once, for four requests',
    );
    renameSync(`${location}.away`, location);
    assert.equal((await query(test.url, secret, '{ online }')).status, 200);
    assert.equal((await fetch(`${test.url}/readyz`)).status, 200);
  });
});
