import assert from 'node:assert/strict';
import { type Actor, OPERATOR, type Principal } from '../../src/keys/authorization/principal.ts';
import { readDeclaration } from '../../src/features/apply/declaration.ts';
import { EFFECTS } from '../../src/features/contain/effects.ts';
import { isKeysError } from '../../src/keys/basics/errors.ts';
import type { ApiKey } from '../../src/keys/key/api-key.ts';
import { isInProgress } from '../../src/keys/key/rotation.ts';
import type { Permission } from '../../src/keys/permissions/catalog.ts';
import { PermissionSet } from '../../src/keys/permissions/permission-set.ts';
import type { Redemption } from '../../src/features/consent/redeem.ts';
import { digestSecret, readSecret } from '../../src/keys/secret/secret.ts';
import { APP, CALLBACK, newPkce } from '../features/consent/support/consent.ts';
import { describeOnEach } from '../support/dialects.ts';
import { authenticate, openTestKeys, type TestKeys } from '../support/keys.ts';
import { Random } from '../support/random.ts';
import { migratedStore } from '../support/temp.ts';
import { Consent } from '../../src/features/consent/consent.ts';
import { Sessions } from '../../src/features/sessions/sessions.ts';
import { Containments } from '../../src/features/contain/contain.ts';
import { Declarations } from '../../src/features/apply/apply.ts';

const SEED = Number(process.env['TEST_SEED'] ?? 20_261_123);
const STEPS = 30;
const HOUR = 3_600_000;
const GRANTS: readonly Permission[] = ['DOCKER:READ_ANY', 'DOCKER:UPDATE_ANY', 'LOGS:READ_ANY', 'VMS:READ_OWN'];

/**
 * Keys that change one another, and a thief with the secret of one of them. What the thief did is derived from who knew
 * which secret, not from what the program recorded.
 */
class World {
  readonly test: TestKeys;
  readonly random: Random;
  /** All secrets ever made, by public id. */
  readonly secrets = new Map<string, string>();
  /** Public ids of the secrets that the thief could have. */
  readonly stolen = new Set<string>();
  /** The id of the key that made a secret, by the secret's public id. */
  readonly makers = new Map<string, string>();
  /** Grants that the thief gave to keys, by id. */
  readonly given = new Map<string, Set<Permission>>();
  /** The expiry of keys before the thief changed it. */
  readonly ends = new Map<string, number | null>();
  /** Ids of keys that the thief enabled. */
  readonly enabled = new Set<string>();
  /** Ids of keys created with secrets that the thief obtained from other keys. */
  readonly planted = new Set<string>();
  readonly waiting: { redemption: Redemption; isStolen: boolean }[] = [];
  readonly sessions: { token: string; publicId: string; keyId: string }[] = [];
  readonly said: string[] = [];
  /** The ids of the leaked key, which can replace itself. */
  leaked: string[] = [];
  /** The time from which its actions count. */
  since = 0;
  #names = 0;

  constructor(test: TestKeys, random: Random) {
    this.test = test;
    this.random = random;
  }

  get #keys() {
    return this.test.keys;
  }

  async all(): Promise<ApiKey[]> {
    return (await this.#keys.list({ first: 500 }, OPERATOR)).keys;
  }

  /** The caller of a change: a holder of a secret, or the operator. */
  async actor(): Promise<Actor> {
    if (this.secrets.size === 0 || this.random.chance(0.25)) return OPERATOR;
    const leaked = await this.#keys.findById(this.leaked.at(-1) ?? '', OPERATOR);
    const secret =
      leaked && this.random.chance(0.4)
        ? this.secrets.get(leaked.publicId)!
        : this.random.pick([...this.secrets.values()]);
    const result = await authenticate(this.#keys, secret);
    return 'principal' in result && result.principal.secret === 'current' ? result.principal : OPERATOR;
  }

  async chainOf(key: ApiKey): Promise<readonly ApiKey[]> {
    return (await this.#keys.chainsOf([key]))[0]!.keys;
  }

  async isChildOfLeaked(key: ApiKey): Promise<boolean> {
    return (await this.chainOf(key)).some(({ id }) => this.leaked.includes(id) || this.planted.has(id));
  }

  /** True if the caller could be the thief. */
  async isThief(actor: Actor): Promise<boolean> {
    if (actor === OPERATOR) return false;
    if (this.stolen.has(actor.apiKey.publicId)) return true;
    const isLeaked = actor.chain.keys.some(({ id }) => this.leaked.includes(id));
    return (isLeaked && this.test.time.now >= this.since) || actor.chain.keys.some(({ id }) => this.planted.has(id));
  }

  made(secret: string, by: Actor, isStolen: boolean): string {
    const { publicId } = readSecret(secret)!;
    this.secrets.set(publicId, secret);
    if (by !== OPERATOR) this.makers.set(publicId, by.apiKey.id);
    if (isStolen) this.stolen.add(publicId);
    return publicId;
  }

  name(): string {
    return `Key ${(this.#names += 1)}`;
  }

  /** Records a change of a key. */
  async noteChange(before: ApiKey, after: ApiKey, isThief: boolean): Promise<void> {
    const given = this.given.get(before.id) ?? new Set();
    this.given.set(before.id, given);
    const [old, fresh] = [before, after].map((key) => new Set(accessOf(this.test, key)));
    const counts = isThief && !(await this.isChildOfLeaked(before));
    for (const permission of fresh!) if (!old!.has(permission) && counts) given.add(permission);
    for (const permission of given) if (!fresh!.has(permission)) given.delete(permission);
    const isLater = before.expiresAt !== null && (after.expiresAt === null || after.expiresAt > before.expiresAt);
    if (isLater && counts && !this.ends.has(before.id)) this.ends.set(before.id, before.expiresAt);
    const bound = this.ends.get(before.id);
    if (bound != null && after.expiresAt !== null && after.expiresAt <= bound) this.ends.delete(before.id);
    if (before.disabledAt !== null && after.disabledAt === null && counts) this.enabled.add(before.id);
    if (after.disabledAt !== null) this.enabled.delete(before.id);
  }

  async step(): Promise<void> {
    const { random, test } = this;
    test.time.now += 1000;
    const by = await this.actor();
    const isThief = await this.isThief(by);
    const key = random.pick(await this.all());
    const kind = random.pick(Object.keys(this.#steps));
    try {
      await this.#steps[kind]!(by, isThief, key);
      this.said.push(`${by === OPERATOR ? 'operator' : by.apiKey.name}${isThief ? '!' : ''} ${kind} ${key.name}`);
    } catch (error) {
      if (!isKeysError(error)) throw error;
    }
  }

  readonly #steps: Record<string, (by: Actor, isThief: boolean, key: ApiKey) => Promise<void>> = {
    create: async (by, isThief) => {
      const grants = this.random.chance(0.5) ? { roles: ['ADMIN'] } : { permissions: this.random.some(GRANTS, 2) };
      const end = this.random.chance(0.3) ? { expiresIn: '48h' } : {};
      const { key, apiKey } = await this.#keys.create({ name: this.name(), ...grants, ...end }, by);
      this.made(key, by, isThief);
      if (isThief && !(await this.isChildOfLeaked(apiKey))) this.planted.add(apiKey.id);
    },
    replaceItself: async (by, isThief) => {
      if (by === OPERATOR) return;
      const { id, name } = by.apiKey;
      const before = (await this.#keys.findById(id, OPERATOR))!;
      const { key, apiKey } = await this.#keys.create({ name, roles: ['ADMIN'], overwrite: true }, by);
      this.made(key, by, isThief);
      const given = this.given.get(id);
      if (given) this.given.set(apiKey.id, given);
      if (this.ends.has(id)) this.ends.set(apiKey.id, this.ends.get(id)!);
      if (this.enabled.has(id)) this.enabled.add(apiKey.id);
      if (this.planted.has(id)) this.planted.add(apiKey.id);
      if (this.leaked.includes(id)) this.leaked.push(apiKey.id);
      await this.noteChange({ ...before, id: apiKey.id }, apiKey, isThief);
    },
    replace: async (by, isThief, { name, id }) => {
      if (by !== OPERATOR && by.apiKey.id === id) return;
      const { key, apiKey } = await this.#keys.create({ name, roles: ['ADMIN'], overwrite: true }, by);
      this.made(key, by, isThief);
      if (isThief && !(await this.isChildOfLeaked(apiKey))) this.planted.add(apiKey.id);
    },
    rotate: async (by, isThief, { id }) => {
      const grace = this.random.pick(['0s', '1h', '90d', '90d']);
      const activate = this.random.pick(['now', 'on-first-use']);
      const disableCreated = this.random.chance(0.1);
      const { key } = await this.#keys.rotate(id, { grace, activate, disableCreated }, by);
      this.made(key, by, isThief);
    },
    use: async () => {
      await authenticate(this.#keys, this.random.pick([...this.secrets.values()]));
      await this.#keys.finishActivity();
    },
    finish: async (by, _, { id }) => void (await this.#keys.finishRotation(id, by)),
    rollBack: async (by, isThief, { id, publicId }) => {
      const { after } = await this.#keys.rollBackRotation(id, by);
      // Undoing a key's own rotation restores the earlier secret.
      if (isThief && this.makers.get(publicId) !== (by as Principal).apiKey.id) this.stolen.add(after.publicId);
    },
    grant: async (by, isThief, { id }) => {
      const { before, after } = await this.#keys.update(
        id,
        { roles: this.random.chance(0.3) ? ['VIEWER'] : [], permissions: this.random.some(GRANTS, 4) },
        by,
      );
      await this.noteChange(before, after, isThief);
    },
    move: async (by, isThief, { id }) => {
      const change = this.random.pick([{ expiresIn: '24h' }, { expiresIn: '96h' }, { expiresAt: null }]);
      const { before, after } = await this.#keys.update(id, change, by);
      await this.noteChange(before, after, isThief);
    },
    loosen: async (by, _, { id }) => {
      const limits = this.random.pick([[], ['10/m'], ['100/m', '1000/d']]);
      await this.#keys.update(id, { limits, allowFrom: this.random.pick([null, ['10.0.0.0/8'], ['10.1.0.0/16']]) }, by);
    },
    enable: async (by, isThief, { id }) => {
      const { before, after } = await this.#keys.setEnabled(id, true, by);
      await this.noteChange(before, after, isThief);
    },
    disable: async (by, isThief, { id }) => {
      if (this.leaked.includes(id)) return;
      const { before, after } = await this.#keys.setEnabled(id, false, by);
      await this.noteChange(before, after, isThief);
    },
    apply: async (by, isThief, { id, name }) => {
      const declared = await readDeclaration(
        { keys: [{ name, permissions: this.random.some(GRANTS, 3), enabled: true }] },
        this.#keys.catalog,
      );
      const before = (await this.#keys.findById(id, OPERATOR))!;
      await this.#keys.feature(Declarations).apply(declared, {}, by);
      await this.noteChange(before, (await this.#keys.findById(id, OPERATOR))!, isThief);
    },
    adopt: async (_, __, { id }) => {
      const before = (await this.#keys.findById(id, OPERATOR))!;
      const isTheirs = await this.isChildOfLeaked(before);
      const family = await this.test.store.repository.findWithDescendants([id]);
      if (before.createdBy === null || this.leaked.includes(id)) return;
      const isCounted =
        this.test.time.now >= this.since || (await this.chainOf(before)).some((one) => this.planted.has(one.id));
      await this.#keys.adopt(id, OPERATOR);
      this.planted.delete(id);
      if (!isTheirs || !isCounted) return;
      // Their creator knows their secrets.
      for (const { publicId, rotation } of family) {
        this.stolen.add(publicId);
        if (rotation) this.stolen.add(rotation.previousPublicId);
      }
    },
    delete: async (by, _, { id }) => {
      if (!this.leaked.includes(id) && this.random.chance(0.3)) await this.#keys.delete([id], by);
    },
    approve: async (by, isThief) => {
      const isDevice = this.random.chance(0.5);
      const { verifier, challenge } = newPkce();
      const redirect = { uri: CALLBACK, state: null, challenge };
      const wanted = { client: APP, roles: [], permissions: this.random.some(GRANTS, 2) };
      const asked = await this.#keys.feature(Consent).ask({ ...wanted, ...(!isDevice && { redirect }) });
      const { code } = await this.#keys.feature(Consent).approve(asked.request, {}, by);
      const redemption: Redemption = isDevice
        ? { clientId: APP.id, deviceCode: asked.deviceCode! }
        : { clientId: APP.id, code: code!, redirectUri: CALLBACK, verifier };
      if (this.random.chance(0.5)) {
        this.waiting.push({ redemption, isStolen: isThief });
        return;
      }
      const redeemed = await this.#keys.feature(Consent).redeem(redemption);
      if (!('key' in redeemed)) return;
      this.made(redeemed.key, by, isThief);
      if (isThief && !(await this.isChildOfLeaked(redeemed.apiKey))) this.planted.add(redeemed.apiKey.id);
    },
    signIn: async () => {
      const [publicId, secret] = this.random.pick([...this.secrets]);
      const result = await authenticate(this.#keys, secret);
      if (!('principal' in result)) return;
      const { id } = result.principal.apiKey;
      this.sessions.push({
        token: await this.#keys.feature(Sessions).begin(id, digestSecret(secret)),
        publicId,
        keyId: id,
      });
    },
    wait: async () => void (this.test.time.now += this.random.pick([60_000, HOUR, 30 * HOUR])),
  };
}

function accessOf({ keys }: TestKeys, key: ApiKey): Permission[] {
  return PermissionSet.of(keys.catalog, key).permissions();
}

describeOnEach('attacks: a thief whose key is contained', (dialect) => {
  const worlds = dialect === 'sqlite' ? 40 : 8;

  it(`has nothing left, and nothing else has changed, with seed ${SEED}`, async () => {
    const seen = { undone: 0, kept: 0, deleted: 0, since: 0 };
    for (let index = 0; index < worlds; index += 1) {
      const test = await openTestKeys({ database: await migratedStore() });
      try {
        await live(new World(test, new Random(SEED + index)), seen, `world ${index}`);
      } finally {
        await test.store.close();
      }
    }
    for (const [what, count] of Object.entries(seen)) assert.ok(count > worlds / 10, `${what}: ${count}`);
  });

  async function live(world: World, seen: Record<'undone' | 'kept' | 'deleted' | 'since', number>, where: string) {
    const { test, random } = world;
    const { keys, time } = test;
    for (const name of ['Ops', 'CI', 'Web', 'Backup']) {
      time.now += 1;
      const end = random.chance(0.3) ? { expiresIn: '72h' } : {};
      const { key, apiKey } = await keys.create({ name, roles: ['ADMIN'], ...end }, OPERATOR);
      world.made(key, OPERATOR, false);
      if (name === 'Ops') world.leaked = [apiKey.id];
    }
    const quiet = random.chance(0.3) ? random.pick([5, 10, 15]) : 0;
    if (quiet > 0) world.since = Number.POSITIVE_INFINITY;
    for (let step = 0; step < STEPS; step += 1) {
      if (quiet > 0 && step === quiet) world.since = time.now + 1000;
      await world.step();
    }
    // Approvals of applications that are over no longer belong to a key.
    time.now += 1000;
    if (random.chance(0.3)) await keys.delete(world.leaked, OPERATOR);
    if (world.since > 0) seen.since += 1;
    const id = world.leaked.at(-1)!;
    const isGone = (await keys.findById(id, OPERATOR)) === undefined;
    // Nothing that it did may be left.
    if (isGone && (await test.store.repository.port(EFFECTS).actorsNamed(id)).length === 0) return;
    if (isGone) seen.deleted += 1;
    const before = await world.all();
    const after = await contained(world, id);
    const said = `${where}:\n${world.said.join('\n')}`;
    await check(world, { before, after, seen, said });
  }

  async function contained(world: World, id: string): Promise<Map<string, ApiKey>> {
    const { keys } = world.test;
    const since = world.since > 0 ? new Date(world.since).toISOString() : undefined;
    const plan = await keys.feature(Containments).plan(id, since, OPERATOR);
    const done = await keys.feature(Containments).contain(id, since, OPERATOR);
    assert.deepEqual([done.issued, done.requests], [plan.issued, plan.requests]);
    const again = await keys
      .feature(Containments)
      .plan(id, since, OPERATOR)
      .catch((error: unknown) => {
        assert.ok(isKeysError(error) && error.code === 'NOT_FOUND');
      });
    if (again) assert.deepEqual([again.changes, again.requests], [[], []], `once is enough: ${world.said.join('\n')}`);
    assert.deepEqual((await keys.audit.check()).comparison!.differences, []);
    return new Map((await world.all()).map((key) => [key.id, key]));
  }

  async function check(
    world: World,
    {
      before,
      after,
      seen,
      said,
    }: { before: ApiKey[]; after: Map<string, ApiKey>; seen: Record<string, number>; said: string },
  ) {
    const { test, stolen, given, ends, enabled } = world;
    const { keys, time } = test;
    const { now } = time;
    for (const key of before) {
      const { id, name, publicId, rotation } = key;
      const fresh = after.get(id)!;
      assert.ok(fresh, said);
      const about = `${name} ${said}`;
      assert.deepEqual(missing(accessOf(test, fresh), accessOf(test, key)), [], `more than before: ${about}`);
      if (await world.isChildOfLeaked(key)) {
        assert.notEqual(fresh.disabledAt, null, `a child key of the thief: ${about}`);
        continue;
      }
      const previous = isInProgress(rotation, now) ? rotation.previousPublicId : undefined;
      const isCurrentStolen = stolen.has(publicId);
      const isPreviousStolen = previous !== undefined && stolen.has(previous);
      const taken = [...(given.get(id) ?? [])];
      const end = ends.get(id);
      const isMoved = ends.has(id) && end !== null;
      const isTouched = isCurrentStolen || isPreviousStolen || taken.length > 0 || isMoved || enabled.has(id);
      if (fresh.disabledAt === null) {
        assert.deepEqual(common(accessOf(test, fresh), taken), [], `given by the thief: ${about}`);
        assert.ok(!enabled.has(id), `enabled by the thief: ${about}`);
      }
      if (isMoved) assert.ok(fresh.expiresAt !== null && fresh.expiresAt <= end!, `moved by the thief: ${about}`);
      const isRestored = isCurrentStolen && previous !== undefined && !isPreviousStolen;
      if (isRestored) assert.equal(fresh.publicId, previous, `restored: ${about}`);
      else if (isCurrentStolen) assert.ok(fresh.disabledAt !== null && fresh.publicId !== publicId, `ended: ${about}`);
      else assert.equal(fresh.publicId, publicId, `not the thief's: ${about}`);
      if (isPreviousStolen) assert.equal(fresh.rotation, null, `ended in its grace: ${about}`);
      const isLost = (isCurrentStolen && !isRestored) || enabled.has(id) || taken.length > 0;
      if (!isLost) assert.equal(fresh.disabledAt, key.disabledAt, `disabled for nothing: ${about}`);
      if (isTouched) seen['undone']! += 1;
      else if (!isLoosened(key, fresh)) {
        assert.deepEqual(fresh, key, `changed for nothing: ${about}`);
        seen['kept']! += 1;
      }
    }
    for (const publicId of stolen)
      assert.ok('refused' in (await authenticate(keys, world.secrets.get(publicId)!)), `a secret works: ${said}`);
    for (const { token, publicId, keyId } of world.sessions) {
      const session = await keys.feature(Sessions).look(token);
      if (!session) continue;
      assert.notEqual(
        after.get(keyId)?.disabledAt === null &&
          stolen.has(publicId) &&
          'principal' in (await authenticate(keys, world.secrets.get(publicId)!)),
        true,
        `a session goes on: ${said}`,
      );
    }
    for (const { redemption, isStolen } of world.waiting) {
      time.now += 10_000;
      if (isStolen)
        assert.ok('refused' in (await keys.feature(Consent).redeem(redemption)), `a request gets a key: ${said}`);
    }
  }

  /** The model does not cover limits and networks that the thief widened: they can end up stricter. */
  function isLoosened(before: ApiKey, after: ApiKey): boolean {
    return JSON.stringify([before.limits, before.allowFrom]) !== JSON.stringify([after.limits, after.allowFrom]);
  }

  const missing = (some: readonly Permission[], others: readonly Permission[]) =>
    some.filter((permission) => !others.includes(permission));
  const common = (some: readonly Permission[], others: readonly Permission[]) =>
    some.filter((permission) => others.includes(permission));
});
