import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { OPERATOR, type Principal } from '../../src/keys/authorization/principal.ts';
import { readDeclaration } from '../../src/features/apply/declaration.ts';
import { describeOnEach } from '../support/dialects.ts';
import { authenticate, createPrincipal, jsonLines, openTestKeys, storedKey, type TestKeys } from '../support/keys.ts';
import { importKeys } from '../features/transfer/support/import-keys.ts';
import { Declarations } from '../../src/features/apply/apply.ts';

const HOUR = 3_600_000;
const FORBIDDEN = { code: 'FORBIDDEN' };

describeOnEach('attacks: escalation', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys({ resources: ['WIKI', { name: 'VAULT_ITEM', credentials: true }] });
  });
  afterEach(() => test.store.close());

  const create = (name: string, grants: string, by: Principal | typeof OPERATOR = OPERATOR, expiresIn?: string) => {
    const [roles, permissions] = [[], []] as string[][];
    for (const grant of grants.split(' ')) (grant.includes(':') ? permissions! : roles!).push(grant);
    const input = { name, roles: roles!, permissions: permissions!, ...(expiresIn && { expiresIn }) };
    return createPrincipal(test.keys, input, by);
  };
  /** The principal's name for a secret, or the reason for its refusal. */
  const enter = async (secret: string) => {
    const result = await authenticate(test.keys, secret);
    return 'refused' in result ? result.refused : result.principal.apiKey.name;
  };
  const access = async (secret: string) => {
    const result = await authenticate(test.keys, secret);
    return 'refused' in result ? [] : result.principal.access.permissions();
  };

  describe('by a key that a leaked key has created', () => {
    let parent: { secret: string; principal: Principal };
    let child: { secret: string; principal: Principal };
    let grandchild: { secret: string; principal: Principal };
    beforeEach(async () => {
      parent = await create('Leaked', 'ADMIN');
      child = await create('Child', 'ADMIN', parent.principal);
      grandchild = await create('Grandchild', 'ADMIN', child.principal);
      for (const { secret } of [child, grandchild]) await enter(secret); // Puts them into the cache of verified keys.
    });
    const both = async () => [await enter(child.secret), await enter(grandchild.secret)];

    it('is refused with the next request after the leaked key is disabled, and works again when that is enabled', async () => {
      await test.keys.setEnabled(parent.principal.apiKey.id, false, OPERATOR);
      assert.deepEqual(await both(), ['disabled', 'disabled']);
      await test.keys.setEnabled(parent.principal.apiKey.id, true, OPERATOR);
      assert.deepEqual(await both(), ['Child', 'Grandchild']);
    });

    it('can do no more than the leaked key, from the moment it is narrowed', async () => {
      await test.keys.update(parent.principal.apiKey.id, { roles: [], permissions: ['DOCKER:READ_ANY'] }, OPERATOR);
      for (const { secret } of [child, grandchild])
        assert.deepEqual(await access(secret), ['DOCKER:READ_ANY', 'DOCKER:READ_OWN']);
      await test.keys.update(parent.principal.apiKey.id, { roles: ['ADMIN'], permissions: [] }, OPERATOR);
      assert.equal((await access(grandchild.secret)).length, 32 * 8);
    });

    it('expires with the leaked key, whatever its own expiry', async () => {
      await test.keys.update(parent.principal.apiKey.id, { expiresIn: '1h' }, OPERATOR);
      assert.deepEqual(await both(), ['Child', 'Grandchild']);
      test.time.now += HOUR;
      assert.deepEqual(await both(), ['expired', 'expired']);
    });

    it('is deleted with the leaked key', async () => {
      await test.keys.delete([parent.principal.apiKey.id], OPERATOR);
      assert.deepEqual(await both(), ['unknown', 'unknown']);
    });

    it('cannot enable the leaked key again, not with a request that was accepted before', async () => {
      await test.keys.setEnabled(parent.principal.apiKey.id, false, OPERATOR);
      await assert.rejects(test.keys.setEnabled(parent.principal.apiKey.id, true, child.principal), FORBIDDEN);
    });

    it('is named when the leaked key is rotated, and disabled where that is asked for', async () => {
      test.time.now += HOUR;
      const late = await create('Late', 'ADMIN', parent.principal);
      const { id } = parent.principal.apiKey;
      const first = await test.keys.rotate(id, { grace: '0s' }, OPERATOR);
      assert.deepEqual([first.created.map(({ name }) => name), first.disabled], [['Child', 'Late'], []]);
      const request = { grace: '0s', disableCreated: true, createdSince: '30m' };
      const second = await test.keys.rotate(id, request, OPERATOR);
      assert.deepEqual(
        second.disabled.map(({ name }) => name),
        ['Late'],
      );
      assert.deepEqual([await enter(late.secret), await enter(child.secret)], ['disabled', 'Child']);
      await test.keys.rotate(id, { grace: '0s', disableCreated: true }, OPERATOR);
      assert.deepEqual(await both(), ['disabled', 'disabled']);
    });

    it('counts by itself once the operator has adopted it, and only the operator can', async () => {
      await test.keys.setEnabled(parent.principal.apiKey.id, false, OPERATOR);
      const admin = await create('Admin', 'ADMIN');
      await assert.rejects(test.keys.adopt(child.principal.apiKey.id, admin.principal), FORBIDDEN);
      await test.keys.adopt(child.principal.apiKey.id, OPERATOR);
      assert.deepEqual(await both(), ['Child', 'Grandchild']);
      const [entry] = await test.keys.audit.read({ action: 'adopt' }, OPERATOR);
      assert.deepEqual([entry?.apiKey?.name, entry?.after], ['Child', { createdBy: null }]);
      await test.keys.delete([parent.principal.apiKey.id], OPERATOR);
      assert.deepEqual(await both(), ['Child', 'Grandchild']);
    });

    it('is shown correctly: status, effective permissions, and the parent key that reduces them', async () => {
      const { id } = parent.principal.apiKey;
      await test.keys.update(id, { roles: ['VIEWER'] }, OPERATOR);
      await test.keys.setEnabled(id, false, OPERATOR);
      const [chain] = await test.keys.chainsOf([grandchild.principal.apiKey]);
      assert.equal(test.keys.statusOf(chain!), 'DISABLED');
      assert.equal(test.keys.accessOf(chain!).has('DOCKER', 'UPDATE_ANY'), false);
      const [limit, ...others] = test.keys.limitsOf(chain!);
      assert.deepEqual([limit?.ancestor.name, limit?.status, others], ['Leaked', 'DISABLED', []]);
      assert.ok(limit?.permissions.includes('DOCKER:UPDATE_ANY'));
      const decision = test.keys.decide(chain!, 'DOCKER:UPDATE_ANY');
      assert.deepEqual([decision.allowed, decision.grantedBy, decision.deniedBy?.name], [false, ['ADMIN'], 'Leaked']);
      const disabled = await test.keys.list({ status: 'disabled' }, OPERATOR);
      assert.deepEqual(disabled.keys.map(({ name }) => name).toSorted(), ['Child', 'Grandchild', 'Leaked']);
      assert.deepEqual((await test.keys.list({ status: 'active' }, OPERATOR)).keys, []);
      await test.keys.update(id, { expiresIn: '1h' }, OPERATOR);
      test.time.now += HOUR;
      assert.equal((await test.keys.list({ status: 'expired' }, OPERATOR)).keys.length, 3);
    });
  });

  it('by a chain of keys longer than 16 is refused at each door, and one in the store allows nothing', async () => {
    let { principal } = await create('Key 1', 'ADMIN');
    for (let index = 2; index <= 16; index += 1) ({ principal } = await create(`Key ${index}`, 'ADMIN', principal));
    await assert.rejects(create('Key 17', 'ADMIN', principal), { code: 'CHAIN_TOO_LONG' });
    const declared = await readDeclaration({ keys: [{ name: 'Key 17', roles: ['GUEST'] }] }, test.keys.catalog);
    await assert.rejects(test.keys.feature(Declarations).apply(declared, {}, principal), { code: 'CHAIN_TOO_LONG' });
    const line = { name: 'Key 17', roles: ['GUEST'], secret: 'x'.repeat(40), createdBy: principal.apiKey.id };
    const { lines } = await importKeys(test.keys, jsonLines(line));
    assert.deepEqual(
      lines[0]!.errors.map(({ code }) => code),
      ['CHAIN_TOO_LONG'],
    );

    const key = storedKey(randomUUID(), { roles: ['ADMIN'], createdBy: principal.apiKey.id });
    await test.store.repository.write((writer) => writer.insert([key]));
    const [chain] = await test.keys.chainsOf([key]);
    assert.deepEqual([test.keys.statusOf(chain!), test.keys.accessOf(chain!).permissions()], ['DISABLED', []]);
    assert.deepEqual(
      (await test.keys.list({ status: 'disabled' }, OPERATOR)).keys.map(({ id }) => id),
      [key.id],
    );
  });

  describe('by widening another key', () => {
    let weak: Principal;
    beforeEach(async () => {
      weak = (await create('Weak', 'GUEST API_KEY:UPDATE_ANY API_KEY:CREATE_OWN API_KEY:DELETE_ANY')).principal;
    });

    it('cannot enable, rotate or roll back a key that can do more, nor give it a later expiry or more grants', async () => {
      const { principal } = await create('Strong', 'ADMIN', OPERATOR, '1h');
      const { id } = principal.apiKey;
      const { after } = await test.keys.rotate(id, { grace: '1h' }, OPERATOR);
      for (const widen of [
        () => test.keys.rollBackRotation(id, weak),
        () => test.keys.update(id, { expiresAt: null }, weak),
        () => test.keys.update(id, { expiresIn: '2h' }, weak),
        () => test.keys.update(id, { permissions: ['ME:READ_OWN'] }, weak),
      ])
        await assert.rejects(widen(), FORBIDDEN);
      await test.keys.finishRotation(id, weak);
      await assert.rejects(test.keys.rotate(id, {}, weak), FORBIDDEN);
      await test.keys.setEnabled(id, false, weak);
      await assert.rejects(test.keys.setEnabled(id, true, weak), FORBIDDEN);
      const now = await test.keys.findById(id, OPERATOR);
      const rotation = { ...after.rotation, grace: 0, previousEndsAt: test.time.now };
      assert.deepEqual({ ...now, disabledAt: null }, { ...after, rotation });
    });

    it('can narrow it: fewer grants, an earlier expiry, another name, disabled, deleted', async () => {
      const { principal } = await create('Strong', 'ADMIN');
      const { id } = principal.apiKey;
      await test.keys.update(id, { expiresIn: '2h' }, weak);
      await test.keys.update(id, { expiresIn: '1h', name: 'Renamed' }, weak);
      await test.keys.update(id, { roles: [], permissions: ['DOCKER:UPDATE_ANY'] }, weak);
      const { after } = await test.keys.setEnabled(id, false, weak);
      assert.deepEqual([after.name, after.permissions, after.roles], ['Renamed', ['DOCKER:UPDATE_ANY'], []]);
      assert.equal((await test.keys.delete([id], weak)).length, 1);
    });

    it('by apply is the same as by update', async () => {
      await create('Strong', 'VIEWER', OPERATOR, '1h');
      const apply = async (key: object, by: Principal) =>
        test.keys
          .feature(Declarations)
          .apply(await readDeclaration({ keys: [{ name: 'Strong', ...key }] }, test.keys.catalog), {}, by);
      const { expiresAt } = (await test.keys.findByName('Strong', OPERATOR))!;
      const end = new Date(expiresAt!).toISOString();
      await assert.rejects(apply({ roles: ['VIEWER'] }, weak), FORBIDDEN);
      await assert.rejects(apply({ roles: ['VIEWER', 'GUEST'], expiresAt: end }, weak), FORBIDDEN);
      await apply({ roles: ['VIEWER'], expiresAt: end, enabled: false }, weak);
      await assert.rejects(apply({ roles: ['VIEWER'], expiresAt: end, enabled: true }, weak), FORBIDDEN);
    });

    it('cannot outlast itself: what expires soon makes nothing last, neither do its child keys', async () => {
      const short = await create('Short', 'ADMIN', OPERATOR, '1h');
      const guest = await create('Guest', 'GUEST');
      await assert.rejects(
        test.keys.update(guest.principal.apiKey.id, { roles: ['ADMIN'] }, short.principal),
        FORBIDDEN,
      );
      await assert.rejects(test.keys.rotate(guest.principal.apiKey.id, {}, short.principal), FORBIDDEN);
      const beneath = await create('Beneath', 'ADMIN', short.principal);
      assert.equal(beneath.principal.apiKey.expiresAt, short.principal.apiKey.expiresAt);
      await assert.rejects(create('Longer', 'GUEST', beneath.principal, '2h'), FORBIDDEN);
      await test.keys.update(short.principal.apiKey.id, { expiresIn: '30m' }, OPERATOR);
      await assert.rejects(create('Later', 'GUEST', beneath.principal, '45m'), FORBIDDEN);
    });

    it('is allowed to parent keys: a child key never does more than that key', async () => {
      const { principal } = await create('Above', 'ADMIN');
      const child = await create('Child', 'ADMIN', principal);
      await test.keys.update(principal.apiKey.id, { roles: [], permissions: ['API_KEY:UPDATE_OWN'] }, OPERATOR);
      const { key: secret } = await test.keys.rotate(child.principal.apiKey.id, { grace: '0s' }, principal);
      assert.deepEqual(await access(secret), ['API_KEY:UPDATE_OWN']);
    });
  });

  describe('by a previous secret, during the grace', () => {
    it('changes no key: the secret that is being replaced cannot undo its own replacement', async () => {
      const old = await create('Admin', 'ADMIN');
      const { id } = old.principal.apiKey;
      const rotated = await test.keys.rotate(id, { grace: '1h' }, OPERATOR);
      const result = await authenticate(test.keys, old.secret);
      assert.ok('principal' in result && result.principal.secret === 'previous');
      assert.ok(result.principal.access.has('DOCKER', 'UPDATE_ANY'), 'it still uses what the key may use');
      // A principal from before the rotation must not help either.
      for (const by of [result.principal, old.principal]) {
        const declared = await readDeclaration({ keys: [{ name: 'New', roles: ['GUEST'] }] }, test.keys.catalog);
        for (const change of [
          () => test.keys.rollBackRotation(id, by),
          () => test.keys.finishRotation(id, by),
          () => test.keys.rotate(id, { grace: '0s' }, by),
          () => test.keys.create({ name: 'New', roles: ['GUEST'] }, by),
          () => test.keys.create({ name: 'Admin', roles: ['ADMIN'], overwrite: true }, by),
          () => test.keys.update(id, { description: 'mine' }, by),
          () => test.keys.setEnabled(id, false, by),
          () => test.keys.delete([id], by),
          () => test.keys.feature(Declarations).apply(declared, {}, by),
        ])
          await assert.rejects(change(), { code: 'FORBIDDEN', message: /^A previous secret cannot change keys\./ });
      }
      assert.deepEqual([await enter(rotated.key), await enter(old.secret)], ['Admin', 'Admin']);
    });
  });

  describe('by apply', () => {
    const apply = async (
      options: object = {},
      by: Principal | typeof OPERATOR = OPERATOR,
      key: object = { roles: ['ADMIN'] },
    ) =>
      test.keys
        .feature(Declarations)
        .apply(await readDeclaration({ keys: [{ name: 'CI deploy', ...key }] }, test.keys.catalog), options, by);

    it('a key gets no grants from the file of the operator by taking a name first', async () => {
      const guest = await create('Maker', 'GUEST API_KEY:CREATE_OWN');
      const taken = await create('CI deploy', 'GUEST', guest.principal);
      for (const key of [{ roles: ['ADMIN'] }, { roles: ['GUEST'] }])
        await assert.rejects(apply({}, OPERATOR, key), {
          code: 'TAKEOVER_REFUSED',
          message: /^The API key "CI deploy" was created by "Maker"\. .*--adopt/,
        });
      assert.equal((await access(taken.secret)).includes('DOCKER:UPDATE_ANY'), false);
      const other = await create('Other', 'ADMIN');
      await assert.rejects(apply({}, other.principal), { code: 'TAKEOVER_REFUSED' });
      await assert.rejects(apply({ adopt: true }, other.principal), FORBIDDEN);
    });

    it('nor by taking the place of its parent key', async () => {
      const deploy = await create('CI deploy', 'GUEST API_KEY:CREATE_OWN API_KEY:DELETE_ANY');
      const child = await create('Child', 'GUEST API_KEY:CREATE_OWN API_KEY:DELETE_ANY', deploy.principal);
      const grandchild = await create('Grandchild', 'GUEST API_KEY:CREATE_OWN API_KEY:DELETE_ANY', child.principal);
      for (const { principal } of [child, grandchild]) {
        const overwrite = { name: 'CI deploy', roles: ['GUEST'], overwrite: true };
        const message = /^A key cannot replace one of its parent keys/;
        await assert.rejects(test.keys.create(overwrite, principal), { ...FORBIDDEN, message });
        await assert.rejects(test.keys.preview(overwrite, principal), { ...FORBIDDEN, message });
      }
      assert.equal(await enter(deploy.secret), 'CI deploy');
    });

    it('a key gets no grants by giving itself, or one of the operator, a name of the file', async () => {
      const self = await create('Self', 'GUEST API_KEY:UPDATE_OWN');
      const other = await create('Other', 'GUEST');
      const any = await create('Any', 'GUEST API_KEY:UPDATE_ANY');
      const refused = (by: string) => ({
        code: 'TAKEOVER_REFUSED',
        message: `The API key "CI deploy" got its name from "${by}". Delete it, or pass --adopt to take it over with its current secret.`,
      });
      const { id } = self.principal.apiKey;
      await test.keys.update(id, { name: 'CI deploy' }, self.principal);
      await test.keys.update(id, { description: 'x' }, self.principal);
      await assert.rejects(apply(), refused('CI deploy'));
      await apply({}, OPERATOR, { roles: ['GUEST'], permissions: ['API_KEY:UPDATE_OWN'], description: 'not widened' });
      await apply();
      await test.keys.update(id, { name: 'Self' }, OPERATOR);
      await test.keys.update(other.principal.apiKey.id, { name: 'CI deploy' }, any.principal);
      await assert.rejects(apply(), refused('Any'));
      await apply({ adopt: true });
      await apply({}, OPERATOR, { roles: ['VIEWER'] });
      await apply();
      assert.deepEqual((await access(other.secret)).length > 50, true, 'the operator has taken it over');
    });

    it('the operator takes such a key over by saying so, and the log has it', async () => {
      const guest = await create('Maker', 'GUEST API_KEY:CREATE_OWN');
      await create('CI deploy', 'GUEST', guest.principal);
      const { plan } = await apply({ adopt: true });
      assert.equal(plan.updates[0]?.after.createdBy, null);
      const entries = await test.keys.audit.read({ apiKey: 'CI deploy', first: 2 }, OPERATOR);
      assert.deepEqual(
        entries.map(({ action }) => action),
        ['UPDATE', 'ADOPT'],
      );
      assert.equal((await apply()).plan.unchanged, 1);
    });
  });

  describe('by a role', () => {
    it('with another meaning elsewhere is granted by holders of the role, not by holders of its permissions here', async () => {
      const single = await create('Single', 'ADMIN');
      const permissions = test.keys.catalog.permissionsOf('VIEWER');
      await test.keys.update(
        single.principal.apiKey.id,
        { roles: [], permissions: [...permissions, 'API_KEY:CREATE_OWN', 'API_KEY:UPDATE_ANY', 'API_KEY:DELETE_ANY'] },
        OPERATOR,
      );
      const viewer = await create('Viewer', 'VIEWER');
      const by = single.principal;
      await assert.rejects(create('Child', 'VIEWER', by), { message: /does not hold the role VIEWER/ });
      await assert.rejects(test.keys.update(by.apiKey.id, { roles: ['VIEWER'] }, by), FORBIDDEN);
      await assert.rejects(test.keys.rotate(viewer.principal.apiKey.id, {}, by), FORBIDDEN);
      const overwrite = { name: 'Viewer', roles: ['VIEWER'], overwrite: true };
      await assert.rejects(test.keys.create(overwrite, by), FORBIDDEN);
    });

    it('held only on paper is not held: the parent keys must hold it, too', async () => {
      const above = await create('Above', 'VIEWER API_KEY:CREATE_OWN');
      const child = await create('Child', 'VIEWER API_KEY:CREATE_OWN', above.principal);
      const permissions = [...test.keys.catalog.permissionsOf('VIEWER'), 'API_KEY:CREATE_OWN'];
      await test.keys.update(above.principal.apiKey.id, { roles: [], permissions }, OPERATOR);
      await assert.rejects(create('Grandchild', 'VIEWER', child.principal), {
        message: /does not hold the role VIEWER/,
      });
    });

    it('VIEWER never reads a resource of the host that holds credentials', async () => {
      const { secret } = await create('Viewer', 'VIEWER');
      const held = await access(secret);
      assert.deepEqual([held.includes('WIKI:READ_ANY'), held.includes('VAULT_ITEM:READ_ANY')], [true, false]);
    });
  });
});
