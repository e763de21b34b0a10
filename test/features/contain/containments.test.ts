import assert from 'node:assert/strict';
import { type Actor, OPERATOR, type Principal } from '../../../src/keys/authorization/principal.ts';
import { containedFields } from '../../../src/features/contain/contain.ts';
import { KeysError } from '../../../src/keys/basics/errors.ts';
import { EFFECTS } from '../../../src/features/contain/effects.ts';
import type { KeyChange, NewKey } from '../../../src/keys/key/key-change.ts';
import type { RotationRequest } from '../../../src/keys/key/rotation.ts';
import { APP } from '../consent/support/consent.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';
import { Consent } from '../../../src/features/consent/consent.ts';
import { Containments } from '../../../src/features/contain/contain.ts';

const HOUR = 3_600_000;
const FORBIDDEN = { code: 'FORBIDDEN' };

interface Made {
  secret: string;
  principal: Principal;
  id: string;
}

describeOnEach('what a key did to others', () => {
  let test: TestKeys;
  let ops: Made;
  beforeEach(async () => {
    test = await openTestKeys();
    ops = await create('Ops');
  });
  afterEach(() => test.store.close());

  const create = async (name: string, by: Actor = OPERATOR, more: Partial<NewKey> = { roles: ['ADMIN'] }) => {
    test.time.now += 1;
    const { secret, principal } = await createPrincipal(test.keys, { name, ...more }, by);
    return { secret, principal, id: principal.apiKey.id };
  };
  const actorWith = async (secret: string): Promise<Principal> => {
    const result = await authenticate(test.keys, secret);
    assert.ok('principal' in result, 'refused' in result ? result.refused : '');
    return result.principal;
  };
  const rotate = async ({ id }: Made, by: Actor = ops.principal, request: RotationRequest = { grace: '24h' }) => {
    test.time.now += 1;
    return (await test.keys.rotate(id, request, by)).key;
  };
  const update = async ({ id }: Made, change: KeyChange, by: Actor = ops.principal) => {
    test.time.now += 1;
    await test.keys.update(id, change, by);
  };
  const enable = async ({ id }: Made, by: Actor = ops.principal) => {
    test.time.now += 1;
    await test.keys.setEnabled(id, true, by);
  };
  const approve = async (by: Actor) => {
    const consent = test.keys.feature(Consent);
    test.time.now += 1;
    const asked = await consent.ask({ client: APP, roles: [], permissions: ['DOCKER:READ_ANY'] });
    const { request } = await consent.approve(asked.request, {}, by);
    const redeem = () => consent.redeem({ clientId: APP.id, deviceCode: asked.deviceCode! });
    return { name: request.approval!.keyName, redeem };
  };
  const refusal = async (secret: string) => {
    const result = await authenticate(test.keys, secret);
    return 'refused' in result ? result.refused : undefined;
  };
  const issued = async (by: Made = ops, actor: Actor = OPERATOR) =>
    (await test.keys.issuedBy([by.id], actor)).map(({ name, what }) => `${what} ${name}`);
  const contain = (nameOrId = 'Ops', since?: string, actor: Actor = OPERATOR) =>
    test.keys.feature(Containments).contain(nameOrId, since, actor);
  const keyOf = async ({ id }: Made) => (await test.keys.findById(id, OPERATOR))!;

  describe('is kept', () => {
    it('with its details: secrets, widenings and enabling, in order', async () => {
      const [ci, web] = [await create('CI'), await create('Web', OPERATOR, { roles: ['GUEST'] })];
      await test.keys.setEnabled(web.id, false, OPERATOR);
      await rotate(ci);
      await update(web, { roles: ['VIEWER'] });
      await enable(web);
      assert.deepEqual(await issued(), ['SECRET CI', 'WIDENING Web', 'ENABLING Web']);
    });

    it('when it is renamed, disabled or deleted', async () => {
      await rotate(await create('CI'));
      await test.keys.update(ops.id, { name: 'Old ops' }, OPERATOR);
      await test.keys.setEnabled(ops.id, false, OPERATOR);
      assert.deepEqual(await issued(), ['SECRET CI']);
      await test.keys.delete([ops.id], OPERATOR);
      assert.deepEqual(await issued(), ['SECRET CI']);
      assert.equal((await test.keys.feature(Containments).plan('Old ops', undefined, OPERATOR)).contained.id, ops.id);
    });

    it('as what its parent keys did', async () => {
      const child = await create('Child', ops.principal);
      await rotate(await create('CI'), child.principal);
      await test.keys.delete([child.id], OPERATOR);
      assert.deepEqual(await issued(), ['SECRET CI']);
      assert.deepEqual(await issued(child), ['SECRET CI']);
    });

    it("but not changes to its own child keys, nor reductions, nor the operator's", async () => {
      const [child, ci] = [await create('Child', ops.principal), await create('CI')];
      await rotate(child);
      await update(child, { expiresIn: '1h' });
      await update(child, { expiresAt: null });
      await update(ci, { roles: ['VIEWER'], description: 'Less' });
      await update(ci, { roles: ['ADMIN'] }, OPERATOR);
      await test.keys.setEnabled(ci.id, false, ops.principal);
      await test.keys.setEnabled(ci.id, true, OPERATOR);
      await rotate(ci, OPERATOR);
      assert.deepEqual(await issued(), []);
    });

    it('until it is over: a secret rotated out, a grant taken back, a key disabled or deleted', async () => {
      const [ci, web, old, gone] = [
        await create('CI'),
        await create('Web', OPERATOR, { roles: ['GUEST'] }),
        await create('Old'),
        await create('Gone'),
      ];
      await test.keys.setEnabled(old.id, false, OPERATOR);
      await enable(old);
      await rotate(ci);
      await rotate(gone);
      await update(web, { roles: ['GUEST'], permissions: ['DOCKER:READ_ANY'], expiresIn: '1h' });
      await test.keys.finishRotation(ci.id, OPERATOR);
      await rotate(ci, OPERATOR, { grace: '1h' });
      assert.deepEqual(await issued(), ['ENABLING Old', 'SECRET CI', 'SECRET Gone', 'WIDENING Web']);
      test.time.now += HOUR;
      assert.deepEqual(await issued(), ['ENABLING Old', 'SECRET Gone', 'WIDENING Web']);
      await update(web, { permissions: [] }, OPERATOR);
      await test.keys.setEnabled(old.id, false, OPERATOR);
      await test.keys.setEnabled(old.id, true, OPERATOR);
      await test.keys.delete([gone.id], OPERATOR);
      assert.deepEqual(await issued(), []);
    });

    it('of keys that are gone until the audit log is pruned beyond it, unless something has come of it', async () => {
      const [ci, web, gone] = [
        await create('CI'),
        await create('Web', OPERATOR, { roles: ['GUEST'] }),
        await create('Gone'),
      ];
      const asCi = await actorWith(await rotate(ci));
      await rotate(gone);
      await update(web, { roles: ['VIEWER'] }, asCi);
      await test.keys.delete([ci.id, gone.id], OPERATOR);
      test.time.now += HOUR;
      await rotate(await create('Late'));
      await test.keys.audit.prune('30m');
      const kept = await test.store.repository.port(EFFECTS).on([ci.id, web.id, gone.id]);
      assert.deepEqual(kept.map(({ keyId }) => keyId).toSorted(), [ci.id, web.id].toSorted());
      assert.deepEqual(await issued(), ['WIDENING Web', 'SECRET Late']);
    });

    it('of a rollback that brings back what another has ended, not of one that takes its own rotation back', async () => {
      const [ci, web] = [await create('CI'), await create('Web')];
      await rotate(ci, OPERATOR);
      await test.keys.rollBackRotation(ci.id, ops.principal);
      await rotate(web);
      await test.keys.rollBackRotation(web.id, ops.principal);
      assert.deepEqual(await issued(), ['SECRET CI']);
    });

    it('of keys that it created and that were adopted, with their child keys, as long as they have their secrets', async () => {
      const child = await create('Child', ops.principal);
      const grandchild = await create('Grandchild', child.principal);
      await test.keys.adopt(child.id, OPERATOR);
      assert.deepEqual((await issued()).toSorted(), ['ADOPTION Child', 'ADOPTION Grandchild']);
      await rotate(child, OPERATOR, { grace: '0s' });
      assert.deepEqual(await issued(), ['ADOPTION Grandchild']);
      await contain();
      assert.deepEqual([await refusal(child.secret), await refusal(grandchild.secret)], ['rotated', 'rotated']);
      assert.equal((await keyOf(child)).disabledAt, null);
    });

    it('also the secret of an adopted key in its grace, and changes made with earlier ones', async () => {
      const [child, ci] = [await create('Child', ops.principal), await create('CI')];
      const own = await rotate(child, OPERATOR);
      await test.keys.adopt(child.id, OPERATOR);
      assert.deepEqual(await issued(), ['ADOPTION Child']);
      const planted = await create('Planted', await actorWith(await rotate(ci)));
      await rotate(await create('Web'), planted.principal);
      await rotate(planted, planted.principal, { grace: '0s' });
      await test.keys.adopt(planted.id, OPERATOR);
      const last = ['SECRET Web', 'ADOPTION Planted', 'SECRET Planted'];
      assert.deepEqual(await issued(), ['ADOPTION Child', 'SECRET CI', ...last]);
      await contain();
      assert.deepEqual([await refusal(child.secret), await refusal(own)], ['rotated', 'rotated']);
    });

    it('of requests that it agreed to, until their applications have keys', async () => {
      const { name, redeem } = await approve(ops.principal);
      assert.deepEqual(await issued(), [`APPROVAL ${name}`]);
      assert.ok('key' in (await redeem()));
      assert.deepEqual(await issued(), []);
    });

    it('for a key that has replaced itself', async () => {
      const ci = await create('CI');
      await rotate(ci);
      const { key } = await test.keys.create({ name: 'Ops', roles: ['ADMIN'], overwrite: true }, ops.principal);
      const replaced = await actorWith(key);
      assert.deepEqual(await issued({ ...ops, id: replaced.apiKey.id }), ['SECRET CI']);
      await contain();
      assert.deepEqual([await refusal(key), await refusal(ci.secret)], ['disabled', undefined]);
    });

    it('for a key that has not replaced itself, because its secret could not be delivered', async () => {
      await rotate(await create('CI'));
      const deliver = () => {
        throw new KeysError('OUTPUT_FAILED', 'The secret could not be written.');
      };
      const again = { name: 'Ops', roles: ['ADMIN'], overwrite: true };
      await assert.rejects(test.keys.create(again, ops.principal, { deliver }), { code: 'OUTPUT_FAILED' });
      assert.equal(await refusal(ops.secret), undefined);
      assert.deepEqual(await issued(), ['SECRET CI']);
    });

    it('of a key with only its addresses widened', async () => {
      const ci = await create('CI');
      const audience = 'https://mcp.example.org';
      const widening = { before: { audience }, added: { roles: [], permissions: [] } };
      await rotate(ci);
      await test.store.repository.write(async (writer) => {
        const effects = writer.port(EFFECTS);
        const [issue] = await effects.export([ci.id]);
        await effects.delete([issue!.id]);
        await effects.insert([{ ...issue!, kind: 'WIDENING', secret: null, widening }]);
      });
      const { changes } = await contain();
      const change = changes.find(({ before }) => before.id === ci.id);
      assert.deepEqual(change && containedFields(change), [{ field: 'audience', before: null, after: audience }]);
      assert.equal((await keyOf(ci)).audience, audience);
    });

    it('in no more rows for a key that replaces itself again and again', async () => {
      await rotate(await create('CI'));
      let actor = ops.principal;
      const rows = async () => (await test.store.repository.port(EFFECTS).by([actor.apiKey.id])).length;
      for (let time = 1; time <= 5; time += 1) {
        const { key } = await test.keys.create({ name: 'Ops', roles: ['ADMIN'], overwrite: true }, actor);
        actor = await actorWith(key);
        assert.equal(await rows(), 1);
        assert.deepEqual(await issued({ ...ops, id: actor.apiKey.id }), ['SECRET CI']);
      }
      assert.equal((await test.store.repository.port(EFFECTS).actorsNamed('Ops')).length, 1);
    });

    it('only for readers of those keys', async () => {
      await rotate(await create('CI'));
      const reader = await create('Reader', OPERATOR, { permissions: ['API_KEY:READ_OWN'] });
      assert.deepEqual(await issued(ops, reader.principal), []);
      const all = await create('All', OPERATOR, { permissions: ['API_KEY:READ_ANY'] });
      assert.deepEqual(await issued(ops, all.principal), ['SECRET CI']);
    });
  });

  describe('is undone by containing it', () => {
    it('with its own keys: it and all its child keys are disabled', async () => {
      const child = await create('Child', ops.principal);
      const grandchild = await create('Grandchild', child.principal);
      const other = await create('Other');
      await contain();
      for (const each of [ops, child, grandchild]) assert.notEqual((await keyOf(each)).disabledAt, null);
      assert.equal(await refusal(other.secret), undefined);
    });

    it('a secret that waits for its first use, and one in its grace: only the previous one works again', async () => {
      const [ci, web] = [await create('CI'), await create('Web')];
      const asleep = await rotate(ci, ops.principal, { grace: '90d', activate: 'on-first-use' });
      const used = await rotate(web);
      await test.keys.delete([ops.id], OPERATOR);
      await contain();
      assert.deepEqual([await refusal(asleep), await refusal(used)], ['rotated', 'rotated']);
      assert.deepEqual([await refusal(ci.secret), await refusal(web.secret)], [undefined, undefined]);
      assert.equal((await keyOf(ci)).rotation, null);
    });

    it('a secret whose predecessor has ended: the key is disabled, and enabling it brings no secret back', async () => {
      const ci = await create('CI');
      const secret = await rotate(ci, ops.principal, { grace: '0s' });
      await contain();
      assert.equal(await refusal(secret), 'rotated');
      await test.keys.setEnabled(ci.id, true, OPERATOR);
      assert.deepEqual([await refusal(secret), await refusal(ci.secret)], ['rotated', 'rotated']);
      assert.equal(await refusal(await rotate(ci, OPERATOR)), undefined);
    });

    it('a secret whose predecessor was ended by a clock that is ahead: the key is disabled', async () => {
      const ci = await create('CI');
      const secret = await rotate(ci);
      test.time.now += 1000;
      await test.keys.finishRotation(ci.id, OPERATOR);
      test.time.now -= 500;
      await contain();
      assert.deepEqual([await refusal(ci.secret), await refusal(secret)], ['rotated', 'rotated']);
      assert.notEqual((await keyOf(ci)).disabledAt, null);
    });

    it('a secret that was followed by another: its grace ends', async () => {
      const ci = await create('CI');
      const thief = await rotate(ci, ops.principal, { grace: '0s' });
      const own = await rotate(ci, OPERATOR);
      await contain();
      assert.deepEqual([await refusal(thief), await refusal(own)], ['rotated', undefined]);
    });

    it('widenings: grants, end, limits and networks are what both states have', async () => {
      const before = {
        roles: ['VIEWER'],
        permissions: ['DOCKER:UPDATE_OWN'],
        expiresIn: '1h',
        limits: ['10/m', '100/h'],
        allowFrom: ['10.0.0.0/8'],
      };
      const web = await create('Web', OPERATOR, before);
      const original = await keyOf(web);
      await update(web, {
        roles: ['ADMIN'],
        permissions: ['DOCKER:UPDATE_ANY', 'API_KEY:CREATE_ANY'],
        expiresAt: null,
        limits: ['50/m'],
        allowFrom: null,
      });
      await update(web, { description: 'Mine', allowFrom: ['10.1.0.0/16', '192.0.2.0/24'] }, OPERATOR);
      await contain();
      const after = await keyOf(web);
      assert.deepEqual(
        [after.roles, after.permissions, after.expiresAt, after.limits, after.allowFrom, after.description],
        [['VIEWER'], ['DOCKER:UPDATE_OWN'], original.expiresAt, ['10/m', '100/h'], ['10.1.0.0/16'], 'Mine'],
      );
    });

    it('leaves what others gave beside it in fields that it did not widen, and never gives more than now', async () => {
      const web = await create('Web', OPERATOR, { permissions: ['DOCKER:READ_ANY', 'LOGS:READ_ANY'] });
      await update(web, { permissions: ['DOCKER:READ_ANY', 'LOGS:READ_ANY', 'VMS:READ_ANY'] });
      await update(web, { permissions: ['LOGS:READ_OWN', 'VMS:READ_ANY'], limits: ['5/s'] }, OPERATOR);
      await contain();
      const { permissions, limits, disabledAt } = await keyOf(web);
      assert.deepEqual([permissions, limits, disabledAt], [['LOGS:READ_OWN'], ['5/s'], null]);
    });

    it('a role with all that it includes, and then nothing is in force', async () => {
      const web = await create('Web', OPERATOR, { roles: ['GUEST'] });
      await update(web, { roles: ['ADMIN'] });
      await update(web, { roles: [], permissions: ['DOCKER:READ_ANY', 'ME:READ_OWN'] });
      await contain();
      const { roles, permissions, disabledAt } = await keyOf(web);
      assert.deepEqual([roles, permissions, disabledAt, await issued()], [[], ['ME:READ_OWN'], null, []]);
    });

    it('a widening that would leave nothing: the key is disabled', async () => {
      const web = await create('Web', OPERATOR, { permissions: ['DOCKER:READ_ANY'] });
      await update(web, { permissions: ['DOCKER:READ_ANY', 'VMS:READ_ANY'] });
      await update(web, { permissions: ['VMS:READ_ANY'], limits: ['5/s'] }, OPERATOR);
      await update(web, { permissions: ['VMS:READ_ANY', 'LOGS:READ_ANY'], limits: [] });
      await contain();
      assert.deepEqual((await contain()).changes, []);
      const { permissions, limits, disabledAt } = await keyOf(web);
      assert.deepEqual([permissions, limits, disabledAt === null], [['VMS:READ_ANY'], ['5/s'], false]);
    });

    it('by disabling the keys that it enabled', async () => {
      const old = await create('Old');
      await test.keys.setEnabled(old.id, false, OPERATOR);
      await enable(old);
      await contain();
      assert.equal(await refusal(old.secret), 'disabled');
    });

    it('requests that it agreed to get no key, and the keys of others are disabled', async () => {
      const [first, second] = [await approve(ops.principal), await approve(ops.principal)];
      const redeemed = await first.redeem();
      assert.ok('key' in redeemed);
      await contain();
      assert.equal(await refusal(redeemed.key), 'disabled');
      await test.keys.setEnabled(ops.id, true, OPERATOR);
      test.time.now += HOUR / 60;
      assert.deepEqual(await second.redeem(), { refused: 'access_denied', reason: 'denied' });
    });

    it('including changes made with secrets that it issued, at any distance', async () => {
      const [ci, web, old] = [
        await create('CI'),
        await create('Web'),
        await create('Old', OPERATOR, { roles: ['GUEST'] }),
      ];
      const before = await create('Before', ci.principal);
      const asCi = await actorWith(await rotate(ci, ops.principal, { grace: '0s' }));
      const planted = await create('Planted', asCi);
      const secret = await rotate(web, asCi, { grace: '90d', activate: 'on-first-use' });
      await update(old, { roles: ['VIEWER'] }, planted.principal);
      const itself = await rotate(ci, asCi, { grace: '0s' });
      await test.keys.delete([ops.id], OPERATOR);
      assert.deepEqual(await issued(), ['CREATION Planted', 'SECRET Web', 'WIDENING Old', 'SECRET CI']);
      await contain();
      const refused = await Promise.all([itself, planted.secret, secret, web.secret, before.secret].map(refusal));
      assert.deepEqual(refused, ['rotated', 'disabled', 'rotated', undefined, 'disabled']);
      assert.deepEqual((await keyOf(old)).roles, ['GUEST']);
      assert.equal((await keyOf(before)).disabledAt, null);
    });

    it('also once those secrets have ended', async () => {
      const [ci, web] = [await create('CI'), await create('Web', OPERATOR, { roles: ['GUEST'] })];
      const asCi = await actorWith(await rotate(ci));
      await update(web, { roles: ['ADMIN'] }, asCi);
      await test.keys.finishRotation(ci.id, OPERATOR);
      const own = await rotate(ci, OPERATOR, { grace: '0s' });
      assert.deepEqual(await issued(), ['WIDENING Web']);
      await contain();
      assert.deepEqual([await refusal(own), (await keyOf(web)).roles], [undefined, ['GUEST']]);
    });

    it('since a time: earlier changes stay, but not its child keys', async () => {
      const [ci, web] = [await create('CI'), await create('Web')];
      const [early, child] = [await rotate(ci), await create('Early', ops.principal)];
      test.time.now += HOUR;
      const [late, planted] = [await rotate(web), await create('Late', ops.principal)];
      test.time.now += 1;
      await contain('Ops', '30m');
      assert.deepEqual([await refusal(early), await refusal(late)], [undefined, 'rotated']);
      for (const each of [ops, child, planted]) assert.notEqual((await keyOf(each)).disabledAt, null);
    });

    it('once: containing it again changes nothing', async () => {
      await rotate(await create('CI'), ops.principal, { grace: '0s' });
      await approve(ops.principal);
      await contain();
      const again = await contain();
      assert.deepEqual([again.changes, again.issued, again.requests], [[], [], []]);
    });

    it('nothing that others have enabled since it had disabled it', async () => {
      const other = (await create('Admin')).principal;
      for (const by of [OPERATOR, other] satisfies Actor[]) {
        const [fresh, before] = [await create('Fresh'), await create('Before')];
        await test.keys.setEnabled(before.id, false, OPERATOR);
        await enable(before);
        for (const key of [fresh, before]) {
          await test.keys.setEnabled(key.id, false, ops.principal);
          await enable(key, by);
        }
        const { issued: done, changes } = await contain();
        assert.deepEqual([done, changes.map(({ before: { name } }) => name)], [[], ['Ops']]);
        for (const key of [fresh, before]) assert.equal((await keyOf(key)).disabledAt, null);
        await test.keys.delete([fresh.id, before.id], OPERATOR);
        await enable(ops, OPERATOR);
      }
    });

    it('again what such a secret created and others enabled, but not once it is adopted and rotated', async () => {
      const asCi = await actorWith(await rotate(await create('CI')));
      const planted = await create('Planted', asCi);
      for (let time = 0; time < 2; time += 1) {
        await contain();
        assert.equal(await refusal(planted.secret), 'disabled');
        await enable(planted, OPERATOR);
      }
      await test.keys.adopt(planted.id, OPERATOR);
      const own = await rotate(planted, OPERATOR, { grace: '0s' });
      assert.deepEqual([(await contain()).changes, await refusal(own)], [[], undefined]);
      assert.equal(await refusal(planted.secret), 'rotated');
    });

    it('as it was planned, and nothing is written by the plan', async () => {
      const ci = await create('CI');
      await rotate(ci);
      const head = await test.store.repository.auditLog.head();
      const plan = await test.keys.feature(Containments).plan('Ops', undefined, OPERATOR);
      assert.deepEqual(await test.store.repository.auditLog.head(), head);
      const fields = plan.changes.map((change) => [
        change.before.name,
        containedFields(change).map(({ field }) => field),
      ]);
      assert.deepEqual(fields, [
        ['Ops', ['enabled']],
        ['CI', ['prefix', 'previousPrefix']],
      ]);
      const done = await contain();
      assert.deepEqual([done.issued, done.changes], [plan.issued, plan.changes]);
    });

    it('in the audit log: one entry for it, and each change of a key, which is as the log says', async () => {
      await rotate(await create('CI'), ops.principal, { grace: '0s' });
      await test.keys.delete([ops.id], OPERATOR);
      await contain();
      const entries = await test.keys.audit.read({}, OPERATOR);
      assert.deepEqual(
        entries.slice(0, 3).map(({ action, apiKey }) => `${action} ${apiKey?.name}`),
        ['DISABLE CI', 'ROTATE CI', 'CONTAIN Ops'],
      );
      const { verification, comparison } = await test.keys.audit.check();
      assert.ok('entries' in verification);
      assert.deepEqual(comparison?.differences, []);
    });

    it('records nothing of the key that does it', async () => {
      const guard = await create('Guard');
      await rotate(await create('CI'));
      await contain('Ops', undefined, guard.principal);
      assert.deepEqual(await issued(guard), []);
    });
  });

  describe('can be undone', () => {
    it('only by callers that may delete and disable all of it', async () => {
      await rotate(await create('CI'));
      const own = await create('Own', OPERATOR, { permissions: ['API_KEY:UPDATE_ANY', 'API_KEY:DELETE_OWN'] });
      await assert.rejects(contain(ops.id, undefined, own.principal), FORBIDDEN);
      await test.keys.delete([ops.id], OPERATOR);
      await assert.rejects(contain(ops.id, undefined, own.principal), { code: 'NOT_FOUND' });
      const guard = await create('Guard', OPERATOR, { permissions: ['API_KEY:UPDATE_ANY', 'API_KEY:DELETE_ANY'] });
      await contain(ops.id, undefined, guard.principal);
    });

    it('without giving out secrets of other keys: such a key is disabled', async () => {
      const ci = await create('CI');
      await rotate(ci);
      const guard = await create('Guard', OPERATOR, { permissions: ['API_KEY:UPDATE_ANY', 'API_KEY:DELETE_ANY'] });
      await contain(ops.id, undefined, guard.principal);
      assert.deepEqual([await refusal(ci.secret), (await keyOf(ci)).disabledAt !== null], ['rotated', true]);
    });

    it('by an ambiguous name, only with an id', async () => {
      await rotate(await create('CI'));
      await test.keys.create({ name: 'Ops', roles: ['ADMIN'], overwrite: true }, OPERATOR);
      await assert.rejects(contain(), { code: 'INPUT_INVALID', message: new RegExp(`${ops.id} \\(deleted\\)`) });
      await contain(ops.id);
      const now = await test.keys.findByName('Ops', OPERATOR);
      assert.equal(now?.disabledAt, null);
    });

    it('not of a key that nothing is known of', async () => {
      await test.keys.delete([ops.id], OPERATOR);
      for (const name of ['Ops', ops.id, 'Nobody']) await assert.rejects(contain(name), { code: 'NOT_FOUND' });
    });
  });
});
