import assert from 'node:assert/strict';
import { join } from 'node:path';
import { consentOperations } from '../../src/features/consent/operations.ts';
import { type Client, storeClient } from '../../src/keys/operations/index.ts';
import type { DeclaredKey } from '../../src/features/apply/declaration.ts';
import { isKeysError } from '../../src/keys/basics/errors.ts';
import { formatTime } from '../../src/keys/basics/time.ts';
import { serverClient } from '../../src/remote/server-client.ts';
import { restoreStore } from '../../src/features/backup/restore-store.ts';
import { backUpStore } from '../../src/features/backup/back-up-store.ts';
import { openConnection } from '../../src/store/open.ts';
import { HttpFeed, openEdgeStore, type EdgeStore } from '../../src/features/edge/index.ts';
import { createCatalog } from '../../src/keys/permissions/catalog.ts';
import { NO_LOG } from '../../src/log.ts';
import { openKeysOver, type OpenKeys } from '../../src/service/open-keys.ts';
import { APP } from '../features/consent/support/consent.ts';
import { describeOn } from '../support/dialects.ts';
import { type Granted, KeyModel, type ModelChange, type ModelKey, PERMISSIONS } from '../support/key-model.ts';
import { createPrincipal, jsonLines, openTestKeys, type TestKeys } from '../support/keys.ts';
import { Random } from '../support/random.ts';
import { query, startTestService, type TestService } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';
import { importKeys } from '../features/transfer/support/import-keys.ts';
import { Consent } from '../../src/features/consent/consent.ts';
import { STORES } from '../support/features.ts';
import { applyOperations } from '../../src/features/apply/operations.ts';

/** Set `SVC_API_TEST_SEEDS=1,2,3` and `SVC_API_TEST_STEPS=2000` for other and longer runs. */
const SEEDS = (process.env['SVC_API_TEST_SEEDS'] ?? '20261123,7').split(',').map(Number);
const STEPS = Number(process.env['SVC_API_TEST_STEPS'] ?? 200);

const MINUTE = 60_000;
const NAMES = ['Alpha', 'Bravo', 'Charlie', 'Delta', 'Echo', 'Foxtrot', 'Golf', 'Hotel', 'India', 'Juliett'];
/** Each field with the permission that it needs. */
const FIELDS = {
  me: 'ME:READ_OWN',
  online: 'ONLINE:READ_ANY',
  info: 'INFO:READ_ANY',
  permissions: 'PERMISSION:READ_ANY',
  auditLog: 'LOGS:READ_ANY',
  apiKeys: 'API_KEY:READ_OWN',
} as const;
const PROBE = `{ me { id } online info { name } permissions { resources }
  auditLog(first: 1) { pageInfo { hasNextPage } } apiKeys(first: 1) { pageInfo { hasNextPage } } }`;

/** An approved request of an application. */
interface Agreed {
  deviceCode: string;
  /** The secret of the approving key; undefined for the operator. */
  by: string | undefined;
  granted: Granted;
  ends: number | null;
}

/** Keys, and their permissions according to the model. */
class World {
  readonly random: Random;
  readonly server: TestService;
  /** The store as opened by the command line. */
  readonly here: TestKeys;
  readonly inspector: string;
  /** An edge that follows the server. */
  readonly edge: { store: EdgeStore; keys: OpenKeys };
  readonly model: KeyModel;
  /** All secrets ever made. */
  readonly secrets = new Set<string>();
  /** Secrets that no request has used yet. */
  readonly unseen = new Set<string>();
  readonly backups: { file: string; keys: ReadonlyMap<string, ModelKey> }[] = [];
  readonly agreed: Agreed[] = [];
  /** The key that acts with its new secret, if any. */
  #acting: Pick<ModelKey, 'id' | 'secret'> | undefined;
  #count = 0;

  constructor(parts: Pick<World, 'random' | 'server' | 'here' | 'inspector' | 'edge'>) {
    [this.random, this.server, this.here] = [parts.random, parts.server, parts.here];
    [this.inspector, this.edge] = [parts.inspector, parts.edge];
    this.model = new KeyModel(parts.here.time.now);
  }

  get now(): number {
    return this.model.now;
  }

  set now(now: number) {
    this.server.time.now = this.here.time.now = this.model.now = now;
  }

  next(): number {
    return (this.#count += 1);
  }

  keys(): ModelKey[] {
    return [...this.model.keys.values()];
  }

  /** A random key. Mostly one in the last backup, so that restoring matters for it. */
  key(): ModelKey {
    const { keys } = this.backups.at(-1) ?? {};
    const old = this.keys().filter(({ id }) => keys?.has(id));
    return this.random.pick(old.length > 0 && this.random.chance(0.6) ? old : this.keys());
  }

  /** A random name: if `isFree`, one without a key. */
  name(isFree: boolean): string {
    const free = NAMES.filter((name) => !this.model.named(name));
    return isFree && free.length > 0 ? this.random.pick(free) : this.random.pick(NAMES);
  }

  grants(): { roles: string[]; permissions: (typeof PERMISSIONS)[number][] } {
    const { random } = this;
    const roles = random.chance(0.6) ? [random.pick(['ADMIN', 'ADMIN', 'ADMIN', 'VIEWER', 'GUEST'])] : [];
    const permissions = random.chance(0.5) || roles.length === 0 ? random.some(PERMISSIONS, 5) : [];
    return { roles, permissions: [...new Set(permissions)] };
  }

  /** A random expiry, or none. */
  end(): number | null {
    return this.random.chance(0.7) ? null : this.now + MINUTE * this.random.pick([5, 30, 120]);
  }

  /** The caller: the operator on the store, or a key whose commands go to a server. */
  actor(): { by: string | undefined; door: Client } {
    const { random, here, server } = this;
    if (this.secrets.size === 0 || random.chance(0.35)) {
      const open = Object.assign(here.keys, { location: '', exists: true, close: async () => {} });
      return { by: undefined, door: storeClient(open) };
    }
    const live = [...this.secrets].filter((secret) => this.model.allows(secret)?.has('API_KEY:CREATE_OWN'));
    const able = live.filter((secret) => this.model.allows(secret)!.size > 8);
    const most = [able, live].find((some) => some.length > 0 && random.chance(0.7)) ?? [...this.secrets];
    const by = random.pick(most);
    this.unseen.delete(by);
    const accepted = this.model.acceptedBy(by);
    this.#acting = accepted?.isCurrent ? { ...accepted.key } : undefined;
    return { by, door: serverClient({ server: server.url, key: by }) };
  }

  /** Writes pending uses of the acting key. */
  async finishUse(): Promise<void> {
    await this.server.keys.finishActivity();
    if (this.#acting) this.model.use(this.#acting);
    this.#acting = undefined;
  }

  /** The id of the key that creates something. */
  creator(by: string | undefined): string | null {
    return by === undefined ? null : this.model.acceptedBy(by)!.key.id;
  }

  /** Asserts that the key was allowed to make this change. */
  check(
    by: string | undefined,
    ...change: [before: ModelKey | undefined, after: Omit<ModelKey, 'id' | 'secret'> | undefined]
  ): void {
    if (by !== undefined) assert.equal(this.model.whyNot(by, ...change), undefined);
  }

  /** Adds a new key to the model. */
  add(by: string | undefined, key: Omit<ModelKey, 'creator'>, creator = this.creator(by)): void {
    this.check(by, undefined, { ...key, creator });
    this.model.keys.set(key.id, { ...key, creator });
    this.learn(key.secret);
  }

  learn(secret: string): void {
    this.secrets.add(secret);
    if (this.random.chance(0.3)) this.unseen.add(secret);
  }

  /** Applies a change to the model. */
  change(by: string | undefined, id: string, change: ModelChange): void {
    const before = this.model.keys.get(id)!;
    const after = { ...before, ...change };
    this.check(by, before, after);
    this.model.keys.set(id, after);
  }

  /** The permissions of a secret according to the server, among those in FIELDS. */
  async ask(secret: string): Promise<string[] | undefined> {
    const { status, body } = await query(this.server.url, secret, PROBE);
    if (status === 401) return undefined;
    assert.equal(status, 200, JSON.stringify(body));
    const refused = new Set(
      body.errors?.map(({ path, extensions }) => (assert.equal(extensions['code'], 'FORBIDDEN'), path![0]!)),
    );
    return Object.entries(FIELDS).flatMap(([field, permission]) => (refused.has(field) ? [] : [permission]));
  }

  /** All permissions of a secret by token introspection (RFC 7662). */
  async introspect(secret: string): Promise<string[] | undefined> {
    const response = await fetch(`${this.server.url}/introspect`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.inspector}` },
      body: new URLSearchParams({ token: secret }),
    });
    const { active, scope } = (await response.json()) as { active: boolean; scope: string };
    if (!active) return undefined;
    const all = new Set(scope.split(' '));
    return PERMISSIONS.filter((permission) => all.has(permission));
  }

  /** Compares an edge that has caught up with the model. */
  async compareEdge(): Promise<void> {
    const { store, keys } = this.edge;
    const began = performance.now();
    await until(() => performance.now() - store.state().lagSeconds * 1000 > began);
    for (const secret of this.secrets) {
      const expected = this.model.allows(secret);
      const found = await keys.authenticator.introspect(secret);
      const all = found && new Set<string>(found.principal.access.permissions());
      assert.deepEqual(
        all && PERMISSIONS.filter((permission) => all.has(permission)),
        expected && PERMISSIONS.filter((permission) => expected.has(permission)),
        this.describe(secret),
      );
    }
  }

  /** Compares the permissions of each secret with the model. */
  async compare(): Promise<void> {
    const { model } = this;
    for (const secret of this.secrets) {
      const expected = model.allows(secret);
      const all = expected && PERMISSIONS.filter((permission) => expected.has(permission));
      if (this.unseen.has(secret) || this.random.chance(0.2))
        assert.deepEqual(await this.introspect(secret), all, this.describe(secret));
      if (this.unseen.has(secret)) continue;
      assert.deepEqual(await this.ask(secret), all && Object.values(FIELDS).filter((field) => expected.has(field)));
      const accepted = model.acceptedBy(secret);
      if (accepted?.isCurrent) model.use(accepted.key);
    }
    await this.server.keys.finishActivity();
    // Secrets that are in no key or backup need no further checks.
    const known = [model.keys, ...this.backups.map(({ keys }) => keys)].flatMap((keys) => [...keys.values()]);
    const kept = new Set(known.flatMap(({ secret, previous }) => [secret, previous?.secret]));
    for (const secret of this.secrets) if (!kept.has(secret)) this.secrets.delete(secret);
  }

  describe(secret: string): string {
    const key = this.keys().find((one) => one.secret === secret || one.previous?.secret === secret);
    return JSON.stringify(key && this.model.chainOf(key), undefined, 1);
  }
}

const endText = (ends: number | null) => (ends === null ? {} : { expiresAt: formatTime(ends) });
const NEW = { isDisabled: false, isManaged: false, previous: null };
/** A delivery that never fails. */
const delivery = { deliver: () => {} };

/**
 * The possible steps. Each calls the program through some door. Unless that refuses with a `KeysError`, the step checks
 * the change against the model and applies it there.
 */
const OPERATIONS: Record<string, (world: World) => Promise<unknown>> = {
  async create(world) {
    const { by, door } = world.actor();
    const [name, granted, wanted] = [world.name(true), world.grants(), world.end()];
    const { key: secret, apiKey } = await door.createApiKey({ input: { name, ...granted, ...endText(wanted) } });
    const creator = by === undefined ? null : world.model.acceptedBy(by)!.key;
    const ends = wanted ?? (creator && world.model.endOf(creator));
    world.add(by, { ...NEW, id: apiKey.id, name, ...granted, ends, secret });
  },
  async overwrite(world) {
    const { by, door } = world.actor();
    const own = by === undefined ? undefined : world.model.acceptedBy(by)?.key;
    const replaced = own && world.random.chance(0.5) ? own : world.key();
    const [{ name }, granted, wanted] = [replaced, world.grants(), world.end()];
    const input = { name, ...granted, ...endText(wanted), overwrite: true };
    const { key: secret, apiKey } = await door.createApiKey({ input });
    const ends = wanted ?? (own ? world.model.endOf(own) : null);
    const isOwnPlace = own?.id === replaced.id;
    const creator = own ? (isOwnPlace ? own.creator : own.id) : null;
    const key = { ...NEW, id: apiKey.id, name, ...granted, ends, secret, creator };
    world.check(by, undefined, key);
    world.check(by, replaced, undefined);
    if (own && !isOwnPlace)
      assert.ok(!world.model.chainOf(own).includes(replaced), 'it takes the place of a parent key');
    world.model.delete([replaced.id]);
    world.model.keys.set(key.id, key);
    world.learn(secret);
  },
  async update(world) {
    const { by, door } = world.actor();
    const key = world.key();
    const { random } = world;
    const granted = random.chance(0.8) ? world.grants() : {};
    const ends = random.chance(0.4) ? { ends: world.end() } : {};
    const change = { ...granted, ...('ends' in ends && { expiresAt: formatTime(ends.ends ?? null) }) };
    if (Object.keys(change).length === 0) return;
    await door.updateApiKey({ id: key.id, change });
    world.change(by, key.id, { ...granted, ...ends });
  },
  async 'update by GraphQL'(world) {
    const { by } = world.actor();
    if (by === undefined) return;
    const [key, { roles, permissions }] = [world.key(), world.grants()];
    const input = {
      id: key.id,
      roles,
      permissions: permissions.map((permission) => {
        const [resource, action] = permission.split(':');
        return { resource, actions: [action] };
      }),
    };
    const document = 'mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { id } }';
    const { body } = await query(world.server.url, by, document, { input });
    if (body.data?.['updateApiKey']) world.change(by, key.id, { roles, permissions });
  },
  async switch(world) {
    const { by, door } = world.actor();
    const [key, isEnabled] = [world.key(), world.random.chance(0.5)];
    await door.setApiKeyEnabled({ id: key.id, enabled: isEnabled });
    world.change(by, key.id, { isDisabled: !isEnabled });
  },
  async delete(world) {
    if (world.keys().length < 5) return;
    const { by, door } = world.actor();
    const key = world.key();
    await door.deleteApiKeys({ ids: [key.id] });
    world.check(by, key, undefined);
    world.model.delete([key.id]);
  },
  async rotate(world) {
    const { by, door } = world.actor();
    const [key, minutes] = [world.key(), world.random.pick([0, 10, 60])];
    const activate = world.random.pick(['now', 'on-first-use']);
    const request = { grace: `${minutes}m`, activate };
    const rotated = await door.rotateApiKey({ id: key.id, request, delivery });
    const grace = minutes * MINUTE;
    const previous = { secret: key.secret, grace, ends: activate === 'now' ? world.now + grace : null };
    const after = { ...key, secret: rotated.key, previous };
    world.check(by, key, after);
    world.model.keys.set(key.id, after);
    world.learn(rotated.key);
  },
  async finishRotation(world) {
    const { by, door } = world.actor();
    const key = world.random.pick(rotating(world));
    await door.finishApiKeyRotation({ id: key.id });
    world.check(by, key, { ...key });
    world.model.keys.set(key.id, { ...key, previous: null });
  },
  async rollBackRotation(world) {
    const { by, door } = world.actor();
    const key = world.random.pick(rotating(world));
    await door.rollBackApiKeyRotation({ id: key.id });
    const after = { ...key, secret: key.previous!.secret, previous: null };
    world.check(by, key, after);
    world.model.keys.set(key.id, after);
  },
  async apply(world) {
    const { by, door } = world.actor();
    const { random, model } = world;
    const names = [...new Set([world.name(true), world.name(false)])];
    const declared = names.map((name): DeclaredKey => {
      const enabled = random.chance(0.3) ? { enabled: random.chance(0.5) } : {};
      return { name, description: null, ...world.grants(), expiresAt: world.end(), ...enabled };
    });
    const rules = { prune: random.chance(0.2), adopt: by === undefined && random.chance(0.4) };
    const { created } = await door.of(applyOperations).applyApiKeys({ declared, rules, delivery });
    const before = new Map(names.map((name) => [name, model.named(name)]));
    const pruned = rules.prune ? world.keys().filter(({ name, isManaged }) => isManaged && !names.includes(name)) : [];
    for (const key of pruned) world.check(by, key, undefined);
    // Checked against the state before, because a file can reduce the permissions of the key that applies it.
    const changes = declared.map(({ name, roles, permissions, expiresAt: ends, enabled }) => {
      const there = before.get(name);
      const is = {
        roles,
        permissions,
        ends,
        isDisabled: enabled === undefined ? (there?.isDisabled ?? false) : !enabled,
      };
      if (there) {
        const after = { ...there, ...is, creator: rules.adopt ? null : there.creator };
        world.check(by, there, after);
        return after;
      }
      const { key: secret, apiKey } = created.find(({ apiKey: one }) => one.name === name)!;
      const key = { ...NEW, ...is, id: apiKey.id, name, isManaged: true, secret, creator: world.creator(by) };
      world.check(by, undefined, key);
      world.learn(secret);
      return key;
    });
    for (const key of changes) model.keys.set(key.id, key);
    model.delete(pruned.map(({ id }) => id));
  },
  async import(world) {
    const { random, model, here } = world;
    const number = world.next();
    const secret = `imported-secret-with-many-characters-number-${number}`;
    const [name, granted, ends] = [world.name(true), world.grants(), world.end()];
    const creator = random.chance(0.6) && model.keys.size > 0 ? world.key().id : null;
    const isDisabled = random.chance(0.2);
    const line = {
      name,
      ...granted,
      ...endText(ends),
      secret,
      disabled: isDisabled,
      ...(creator && { createdBy: creator }),
    };
    const { imported } = await importKeys(here.keys, jsonLines(line));
    if (imported === 0) return;
    const { keys } = await here.keys.list({ first: 500 }, 'operator');
    const { id } = keys.find((key) => key.name === name)!;
    model.keys.set(id, { ...NEW, id, name, ...granted, ends, isDisabled, secret, creator });
    world.learn(secret);
  },
  async adopt(world) {
    const created = world.keys().filter(({ creator }) => creator !== null);
    const key = created.length > 0 ? world.random.pick(created) : world.key();
    await world.here.keys.adopt(key.id, 'operator');
    world.model.keys.set(key.id, { ...key, creator: null });
  },
  async agree(world) {
    const { by, door } = world.actor();
    const granted = world.grants();
    const consent = world.server.keys.feature(Consent);
    const { handle, deviceCode } = await consent.ask({ client: APP, ...granted });
    const ends = world.end();
    await door.of(consentOperations).approveConsentRequest({ userCode: handle, choice: endText(ends) });
    world.check(by, undefined, { ...NEW, ...granted, name: '', creator: null, ends: ends ?? endOfActor(world, by) });
    world.agreed.push({ deviceCode: deviceCode!, by, granted, ends });
  },
  async redeem(world) {
    const agreed = world.agreed.pop();
    if (!agreed) return;
    const { deviceCode, by, granted, ends } = agreed;
    const redeemed = await world.server.keys.feature(Consent).redeem({ clientId: APP.id, deviceCode });
    if (!('key' in redeemed)) return;
    const { id, name } = redeemed.apiKey;
    world.add(by, { ...NEW, id, name, ...granted, ends: ends ?? endOfActor(world, by), secret: redeemed.key });
  },
  async wait(world) {
    world.now += MINUTE * world.random.pick([1, 10, 45]);
  },
  /** Like a clock that is corrected. */
  async stepBack(world) {
    world.now -= 500;
  },
  async backUp(world) {
    const file = join(tempFolder(), `backup-${world.next()}.sqlite`);
    const { database } = world.here;
    const from = await openConnection({
      database,
      env: process.env,
      busyTimeoutMs: 5000,
      mustExist: true,
      features: STORES,
    });
    try {
      await backUpStore(from, file, { overwrite: false, auditKey: undefined });
    } finally {
      await from.close();
    }
    world.backups.push({ file, keys: world.model.copy() });
    if (world.backups.length > 3) world.backups.shift();
  },
  async restore(world) {
    const { random, model } = world;
    const backup = random.pick(world.backups);
    if (!backup) return;
    const names = [...backup.keys.values()].map(({ name }) => name);
    const bringBack = random.pick(['all', [], random.some(names, 3)] as const);
    await restoreStore({
      backup: backup.file,
      database: world.here.database,
      env: process.env,
      busyTimeoutMs: 5000,
      listeners: world.here.options.listeners,
      features: STORES,
      bringBack,
      isBlind: false,
      agree: async () => true,
      clock: () => world.now,
    });
    model.restore(backup.keys, ({ name }) => bringBack === 'all' || (bringBack as string[]).includes(name));
  },
};

/** How often each step is taken. */
const OFTEN = `create create create update update apply agree redeem adopt rotate rotate rotate finishRotation
  rollBackRotation switch switch switch restore restore restore adopt`.split(/\s+/);

function rotating(world: World): ModelKey[] {
  const found = world.keys().filter((key) => world.model.previousOf(key));
  return found.length > 0 ? found : world.keys();
}

function endOfActor(world: World, by: string | undefined): number | null {
  const actor = by === undefined ? undefined : world.model.acceptedBy(by);
  return actor ? world.model.endOf(actor.key) : null;
}

describeOn('sqlite', 'whatever is done by whichever door', () => {
  const all = new Map<string, number>();
  for (const seed of SEEDS)
    it(`each secret may do what the rules say, nothing more and nothing less, with seed ${seed}`, async () => {
      const server = await startTestService({ consent: 'both', app: { clients: [APP], failedCredentials: false } });
      const here = await openTestKeys({ database: server.database, consent: 'both' });
      const { secret: inspector } = await createPrincipal(here.keys, {
        name: 'Inspector',
        permissions: ['API_KEY:READ_ANY'],
      });
      const { secret: token } = await createPrincipal(here.keys, { name: 'Edge', permissions: ['EDGE:READ_ANY'] });
      const store = await openEdgeStore(new HttpFeed({ origin: server.url, token, leaseMs: 60_000, log: NO_LOG }));
      const edge = { store, keys: openKeysOver(store, createCatalog({}), { clock: () => here.time.now }) };
      const world = new World({ random: new Random(seed), server, here, inspector, edge });
      const history: string[] = [];
      try {
        for (let step = 0; step < STEPS; step += 1) {
          const isSmall = world.model.keys.size < 4;
          const name = isSmall ? 'create' : world.random.pick([...Object.keys(OPERATIONS), ...OFTEN]);
          history.push(name);
          const revision = JSON.stringify([...world.model.keys]);
          try {
            await OPERATIONS[name]!(world);
          } catch (error) {
            if (!isKeysError(error)) throw error;
            history.push(`  ${error.code} ${error.message}`);
          }
          if (revision !== JSON.stringify([...world.model.keys])) all.set(name, (all.get(name) ?? 0) + 1);
          await world.finishUse();
          await world.compare();
          if (step % 10 === 0) await world.compareEdge();
        }
      } catch (error) {
        console.error(`Seed ${seed}:\n${history.slice(-12).join('\n')}`);
        throw error;
      } finally {
        await edge.keys.close();
        await server.stop();
        await here.store.close();
      }
    });

  it('and each was done', () => {
    if (STEPS * SEEDS.length < 400) return;
    const quiet = new Set(['wait', 'stepBack', 'backUp', 'agree']);
    assert.deepEqual(
      Object.keys(OPERATIONS).filter((name) => !quiet.has(name) && !all.has(name)),
      [],
    );
  });
});
