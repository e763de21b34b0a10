import assert from 'node:assert/strict';
import { importKeys } from './support/import-keys.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { UNIT_MS } from '../../../src/keys/basics/duration.ts';
import { formatTime } from '../../../src/keys/basics/time.ts';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';
import type { PolicyRules } from '../../../src/keys/permissions/policy.ts';
import type { KeysService } from '../../../src/keys/service/service.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { createPrincipal, jsonLines, openTestKeys, type TestKeys } from '../../support/keys.ts';

const BOTH = { maxLifetime: '90d', requireExpiry: true };
const ENDLESS = /"Endless" would never expire, .*\(requireExpiry: true\)\. Give it an expiry, 2030-04-01T/;
const FULL = /With ".*", the key that creates it would have 3 live keys, more than .*\(maxKeysPerCreator: 2\)/;

describeOnEach('the policy, for imported keys', () => {
  let test: TestKeys;
  let keys: KeysService;
  /** Applies a policy, like a changed configuration. */
  const demand = (policy: PolicyRules) => void (keys = test.keys.withCatalog(createCatalog({ policy })));
  const inDays = (days: number) => formatTime(test.time.now + days * UNIT_MS.d);
  const importKey = async (fields: object, dryRun = false) => {
    const { lines } = await importKeys(keys, jsonLines({ roles: ['VIEWER'], ...fields }), { dryRun });
    return lines.flatMap(({ errors }) => errors);
  };

  beforeEach(async () => {
    test = await openTestKeys();
    keys = test.keys;
  });
  afterEach(() => test.store.close());

  it('holds whenever they were created', async () => {
    demand(BOTH);
    const key = { name: 'Endless', secret: 'a'.repeat(30), createdAt: '2029-06-01T00:00:00Z' };
    for (const dryRun of [true, false]) {
      const [error] = await importKey(key, dryRun);
      assert.equal(error!.code, 'POLICY_VIOLATED');
      assert.match(error!.message, ENDLESS);
    }
    assert.equal((await importKey({ ...key, name: 'Late', expiresAt: inDays(91) }))[0]!.code, 'POLICY_VIOLATED');
    assert.equal((await importKey({ ...key, disabled: true }))[0]!.code, 'POLICY_VIOLATED');
    assert.deepEqual(await importKey({ ...key, expiresAt: inDays(90) }), []);
    assert.deepEqual(await importKey({ name: 'Ended', secret: 'b'.repeat(30), expiresAt: inDays(-1) }), []);
  });

  it('counts live keys of each creator', async () => {
    demand({ maxKeysPerCreator: 2 });
    const { principal: creator } = await createPrincipal(test.keys, { name: 'Creator', roles: ['ADMIN'] });
    for (const name of ['One', 'Two']) await keys.create({ name, roles: ['VIEWER'] }, creator);
    await keys.create({ name: 'Off', roles: ['VIEWER'] }, OPERATOR);
    const imported = { secret: 'a'.repeat(30), createdBy: creator.apiKey.id };
    const [error] = await importKey({ ...imported, name: 'Late' }, true);
    assert.match(`${error!.code} ${error!.message}`, FULL);
    assert.deepEqual(await importKey({ ...imported, name: 'Off', disabled: true }, true), [
      { code: 'NAME_TAKEN', message: 'An API key named "Off" already exists.' },
    ]);
    await keys.delete([(await keys.findByName('Two', creator))!.id], creator);
    assert.deepEqual(await importKey({ ...imported, name: 'In time' }), []);
  });

  it('counts all lines of an import', async () => {
    demand({ maxKeysPerCreator: 2 });
    const { principal: creator } = await createPrincipal(test.keys, { name: 'Creator', roles: ['ADMIN'] });
    const line = (name: string) => ({
      name,
      secret: name.repeat(30),
      roles: ['VIEWER'],
      createdBy: creator.apiKey.id,
    });
    const { lines } = await importKeys(keys, jsonLines(line('a'), line('b'), line('c')), {});
    assert.deepEqual(
      lines.map(({ status }) => status),
      ['not imported', 'not imported', 'failed'],
    );
  });

  it('holds though one is created while an import is on its way', async () => {
    demand({ maxKeysPerCreator: 2 });
    const { principal: creator } = await createPrincipal(test.keys, { name: 'Creator', roles: ['ADMIN'] });
    const make = (name: string) => keys.create({ name, roles: ['VIEWER'] }, creator);
    await make('One');
    const line = { name: 'Two', secret: 'a'.repeat(30), roles: ['VIEWER'], createdBy: creator.apiKey.id };
    let meanwhile: Promise<number> | undefined;
    const isRefused = (error: { code?: string }) => assert.equal(error.code, 'POLICY_VIOLATED');
    const create = () =>
      make('Three').then(
        () => 1,
        (error) => (isRefused(error), 0),
      );
    const onProgress = async () => void (meanwhile ??= create());
    const { imported, lines } = await importKeys(keys, jsonLines(line), { onProgress });
    // Either can come first.
    assert.equal(imported + (await meanwhile!), 1);
    for (const { errors } of lines) for (const error of errors) isRefused(error);
  });
});
