import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { type Grantable, GrantableAccess } from '../../src/features/console/grantable-access.ts';
import type { KeyChangeKind } from '../../src/keys/changes/permitted-changes.ts';
import { formatTime } from '../../src/keys/basics/time.ts';
import { principalOf } from '../support/keys.ts';
import { STRICT, type World, WorldMaker } from '../support/offers.ts';
import { Random } from '../support/random.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

const SEED = Number(process.env['TEST_SEED'] ?? 20);
const WORLDS = 40;

const MUTATIONS: Readonly<Record<KeyChangeKind | 'CONTAIN', string>> = {
  UPDATE: 'updateApiKey(input: { id: $id, description: "Another" }) { id }',
  ENABLE: 'setApiKeyEnabled(id: $id, enabled: true) { id }',
  DISABLE: 'setApiKeyEnabled(id: $id, enabled: false) { id }',
  ROTATE: 'rotateApiKey(input: { id: $id }) { key }',
  ROTATE_AND_DISABLE_CREATED: 'rotateApiKey(input: { id: $id, disableCreated: true }) { key }',
  ACTIVATE_ROTATION: 'activateApiKeyRotation(id: $id) { id }',
  FINISH_ROTATION: 'finishApiKeyRotation(id: $id) { id }',
  ROLL_BACK_ROTATION: 'rollBackApiKeyRotation(id: $id) { id }',
  DELETE: 'deleteApiKeys(ids: [$id]) { deleted }',
  CONTAIN: 'containKey(input: { id: $id }) { name }',
};
const ROLES = ['ADMIN', 'CONNECT', 'VIEWER', 'GUEST'];
const PERMISSIONS = [
  ['DOCKER', 'READ_ANY'],
  ['DOCKER', 'READ_OWN'],
  ['DOCKER', 'UPDATE_ANY'],
  ['API_KEY', 'READ_OWN'],
  ['API_KEY', 'UPDATE_ANY'],
  ['ME', 'READ_OWN'],
] as const;

for (const [demands, policy] of [
  ['nothing', {}],
  ['everything', STRICT],
] as const)
  describe(`the changes that a key is offered, where the policy demands ${demands}`, () => {
    let test: TestService;
    let worlds: WorldMaker;
    let random: Random;
    before(async () => {
      random = new Random(SEED);
      test = await startTestService({ policy });
      worlds = new WorldMaker(test, random);
    });
    after(() => test.stop());

    /** Attempts a change. @returns the error code; null if the change was made */
    const attempt = async ({ secret }: World, document: string, variables: object) => {
      const { body } = await query(test.url, secret, document, variables as Record<string, unknown>);
      return (body.errors?.[0]?.extensions['code'] as string | undefined) ?? null;
    };
    /** The calling key, and the target key if the caller can see it. */
    const asked = async ({ secret, target }: World) => {
      const { body } = await query(test.url, secret, 'query ($id: ID!) { apiKey(id: $id) { id } }', { id: target.id });
      if (!body.data?.['apiKey']) return undefined;
      const apiKey = (await test.keys.findById(target.id, OPERATOR))!;
      return { principal: await principalOf(test.keys, secret), apiKey };
    };

    it(`are those that succeed, and no others (seed ${SEED})`, async () => {
      let allowed = 0;
      let refused = 0;
      for (let index = 0; index < WORLDS; index += 1) {
        const recipe = worlds.recipe();
        for (const [change, mutation] of Object.entries(MUTATIONS)) {
          const world = await worlds.make(recipe);
          const seen = await asked(world);
          if (!seen) continue;
          const [changes] = await test.keys.permittedChanges.possibleChanges([seen.apiKey], seen.principal);
          const told = changes!.find((one) => one.change === change)!;
          if (change === 'ENABLE' && world.target.disabledAt === null) {
            // The answer assumes a disabled key.
            if (world.caller.id === world.target.id || world.target.id === world.caller.createdBy) continue;
            await test.keys.setEnabled(world.target.id, false, OPERATOR);
          }
          const code = await attempt(world, `mutation ($id: ID!) { ${mutation} }`, { id: world.target.id });
          assert.equal(told.refusal?.code ?? null, code, `${change} ${world.said}`);
          if (code === null) allowed += 1;
          else refused += 1;
        }
      }
      assert.ok(allowed > 30 && refused > 30, `${allowed} and ${refused}`);
    });

    it(`are the grants that it can give a new key (seed ${SEED})`, async () => {
      let created = 0;
      for (let index = 0; index < WORLDS; index += 1) {
        const world = await worlds.make(worlds.recipe());
        const granted = await test.keys.feature(GrantableAccess).of(await principalOf(test.keys, world.secret));
        const ends = await granted.ends();
        const end = formatTime(ends.latest ?? (ends.required ? test.time.now + 1000 : null));
        const mayCreate = granted.refusal === null && (await granted.countCreatable()) !== 0;
        const create = async (grants: object, expiresAt: string | null, isOffered: boolean, what: string) => {
          const name = `New ${index} ${what.replaceAll(/[^A-Z]+/gi, ' ')}`;
          const input = { name, ...grants, ...(expiresAt !== null && { expiresAt }) };
          const code = await attempt(world, CREATE, { input });
          assert.equal(code === null, isOffered && mayCreate, `${what} ${code} ${world.said}`);
          if (code !== null) return;
          created += 1;
          await test.keys.delete([(await test.keys.findByName(name, OPERATOR))!.id], OPERATOR);
        };
        for (const { grants, what, isOffered } of choices(granted)) await create(grants, end, isOffered, what);
        const some = choices(granted).find(({ isOffered }) => isOffered);
        if (!some) continue;
        // Without an expiry, a new key gets that of its creator.
        if (ends.required && world.caller.expiresAt === null) await create(some.grants, null, false, 'never');
        if (!ends.required) await create(some.grants, null, true, 'never');
        if (ends.latest !== null) await create(some.grants, formatTime(ends.latest + 1000), false, 'too late');
        else await create(some.grants, formatTime(test.time.now + 3000 * 86_400_000), true, 'far');
      }
      assert.ok(created > 20, `${created}`);
    });

    it(`are the grants and expiries that it can give a key (seed ${SEED})`, async () => {
      let added = 0;
      for (let index = 0; index < WORLDS; index += 1) {
        const recipe = worlds.recipe();
        const first = await worlds.make(recipe);
        const seen = await asked(first);
        if (!seen) continue;
        const granted = await test.keys.feature(GrantableAccess).of(seen.principal, seen.apiKey);
        const ends = await granted.ends();
        const update = async (fields: (world: World) => object, isOffered: boolean, what: string) => {
          const world = await worlds.make(recipe);
          const input = { id: world.target.id, ...fields(world) };
          const code = await attempt(
            world,
            'mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { id } }',
            {
              input,
            },
          );
          assert.equal(code === null, isOffered, `${what} ${code} ${JSON.stringify(ends)} ${world.said}`);
          if (code === null) added += 1;
        };
        const { roles, permissions } = first.target;
        for (const role of ROLES.filter((one) => !roles.includes(one)))
          await update(() => ({ roles: [...roles, role] }), isIn(granted, role), role);
        for (const [resource, action] of PERMISSIONS) {
          const held = permissions.some((one) => one.replace(/_ANY$/, '_OWN') === `${resource}:${action}`);
          if (held || permissions.includes(`${resource}:${action}`)) continue;
          const before = permissions.map((one) => one.split(':')).map(([of, to]) => ({ resource: of, actions: [to] }));
          const fields = { permissions: [...before, { resource, actions: [action] }] };
          await update(() => fields, isIn(granted, `${resource}:${action}`), `${resource}:${action}`);
        }
        const after = (time: number) => ({ expiresAt: formatTime(time) });
        await update(() => ({ expiresAt: null }), ends.refusal === null && !ends.required, 'no end');
        await update(() => after(test.time.now + 1000), ends.refusal === null, 'a near end');
        if (ends.refusal !== null) continue;
        const latest = ends.latest ?? test.time.now + 3000 * 86_400_000;
        await update(() => after(latest - 1000), true, 'about the latest end');
        if (ends.latest !== null && latest + 1000 !== first.target.expiresAt)
          await update(() => after(latest + 1000), false, 'a later end');
      }
      assert.ok(added > 20, `${added}`);
    });
  });

const CREATE = 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key } }';

function choices(granted: Grantable) {
  return [
    ...ROLES.map((role) => ({ grants: { roles: [role] }, what: role, isOffered: isIn(granted, role) })),
    ...PERMISSIONS.map(([resource, action]) => ({
      grants: { permissions: [{ resource, actions: [action] }] },
      what: `${resource}:${action}`,
      isOffered: isIn(granted, `${resource}:${action}`),
    })),
  ];
}

function isIn({ roles, permissions }: Grantable, grant: string): boolean {
  return roles.includes(grant) || permissions.permissions().some((permission) => permission === grant);
}
