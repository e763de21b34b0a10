import { randomBytes, randomUUID } from 'node:crypto';
import type { StoredKey } from '../../src/keys/key/api-key.ts';
import type { PolicyRules } from '../../src/keys/permissions/policy.ts';
import { createSecret } from '../../src/keys/secret/secret.ts';
import { storedKey } from './keys.ts';
import type { Random } from './random.ts';
import type { TestService } from './server.ts';

/** A policy with every rule. */
export const STRICT: PolicyRules = {
  maxLifetime: '90d',
  requireExpiry: true,
  grantableByKeys: ['VIEWER', 'API_KEY:READ_OWN', 'DOCKER:READ_ANY'],
  maxKeysPerCreator: 2,
};

const DAY = 86_400_000;
const OWN = ['API_KEY:CREATE_OWN', 'API_KEY:READ_OWN', 'API_KEY:UPDATE_OWN', 'API_KEY:DELETE_OWN'] as const;
const CALLERS: readonly Partial<StoredKey>[] = [
  { roles: ['ADMIN'] },
  { roles: ['ADMIN'] },
  { roles: ['VIEWER'], permissions: ['API_KEY:CREATE_ANY', 'API_KEY:READ_ANY', 'API_KEY:UPDATE_ANY'] },
  { permissions: ['API_KEY:READ_ANY', 'API_KEY:UPDATE_ANY', 'API_KEY:CREATE_OWN'] },
  { permissions: ['API_KEY:READ_ANY', 'API_KEY:DELETE_ANY', 'DOCKER:READ_ANY'] },
  { roles: ['GUEST'], permissions: [...OWN, 'DOCKER:UPDATE_ANY', 'DOCKER:READ_ANY'] },
  { permissions: [...OWN, 'API_KEY:READ_ANY'] },
  { permissions: ['API_KEY:READ_ANY'] },
];
const TARGETS: readonly Partial<StoredKey>[] = [
  { roles: ['GUEST'] },
  { permissions: ['API_KEY:READ_OWN'] },
  { permissions: ['DOCKER:READ_ANY'] },
  { roles: ['ADMIN'] },
  { roles: ['VIEWER'], permissions: ['DOCKER:UPDATE_ANY'] },
];
const RESTRICTIONS: readonly Partial<StoredKey>[] = [
  {},
  {},
  { limits: ['1000/m'] },
  { limits: ['2000/m', '1000000/d'] },
  { allowFrom: ['127.0.0.0/8'] },
  { allowFrom: ['127.0.0.1/32'], limits: ['500/m'] },
];
const RELATIONS = ['self', 'child', 'grandchild', 'parent', 'sibling', 'stranger', 'stranger'] as const;

/** A key that asks, a target key, and the state of both. */
export interface World {
  /** A description of the world, for reproducing a failure. */
  readonly said: string;
  readonly secret: string;
  readonly caller: StoredKey;
  readonly target: StoredKey;
}

/** Makes keys in any state that can exist, even against the current policy: an earlier policy could have allowed it. */
export class WorldMaker {
  readonly #test: TestService;
  readonly #random: Random;
  #count = 0;

  constructor(test: TestService, random: Random) {
    this.#test = test;
    this.#random = random;
  }

  /** A random recipe, from which the same world can be made again. */
  recipe() {
    const random = this.#random;
    return {
      caller: random.pick(CALLERS),
      callerLimits: random.pick(RESTRICTIONS),
      callerEnd: random.pick([null, null, 30 * DAY, 200 * DAY]),
      isPrevious: random.chance(0.1),
      relation: random.pick(RELATIONS),
      target: random.pick(TARGETS),
      targetLimits: random.pick(RESTRICTIONS),
      targetEnd: random.pick([null, 10 * DAY, 10 * DAY, 120 * DAY, -DAY]),
      isDisabled: random.chance(0.4),
      isRotating: random.chance(0.3),
      isWaiting: random.chance(0.5),
      live: random.pick([0, 0, 1, 2, 3]),
      childKeys: random.pick([[], [], [false], [true], [true, false]]),
    };
  }

  /** Makes the world of a recipe. */
  async make(recipe: ReturnType<WorldMaker['recipe']>): Promise<World> {
    const { now } = this.#test.time;
    const secret = createSecret(randomBytes);
    const newest = createSecret(randomBytes);
    const { isPrevious, relation, isRotating, isWaiting, isDisabled } = recipe;
    const rotating = (previous: string) => ({
      previousPublicId: previous,
      startedAt: now - 1000,
      grace: DAY,
      previousEndsAt: isWaiting ? null : now + DAY,
    });
    const parent = this.#key({ roles: ['ADMIN'] });
    const own = isPrevious
      ? { ...ofSecret(newest), previousDigest: secret.digest, rotation: rotating(secret.publicId) }
      : ofSecret(secret);
    const caller = this.#key({
      ...recipe.caller,
      ...recipe.callerLimits,
      ...own,
      createdBy: relation === 'parent' || relation === 'sibling' ? parent.id : null,
      expiresAt: recipe.callerEnd === null ? null : now + recipe.callerEnd,
    });
    const between = this.#key({ roles: ['VIEWER'], createdBy: caller.id });
    const creators = { self: null, child: caller.id, grandchild: between.id, parent: null, sibling: parent.id };
    const known = { self: caller, parent };
    const created = this.#key({
      ...recipe.target,
      ...recipe.targetLimits,
      createdBy: relation === 'stranger' ? null : creators[relation],
      expiresAt: recipe.targetEnd === null ? null : now + recipe.targetEnd,
      disabledAt: isDisabled ? now - 5000 : null,
      ...(isRotating && { previousDigest: randomUUID(), rotation: rotating(randomBytes(6).toString('hex')) }),
    });
    const target = relation === 'self' || relation === 'parent' ? known[relation] : created;
    const live = Array.from({ length: recipe.live }, () =>
      this.#key({ roles: ['GUEST'], createdBy: caller.id, expiresAt: now + DAY }),
    );
    const childKeys = recipe.childKeys.map((isOff) =>
      this.#key({ roles: ['GUEST'], createdBy: target.id, disabledAt: isOff ? now - 100 : null }),
    );
    const all = [parent, caller, ...(relation === 'grandchild' ? [between] : []), ...live];
    if (target === created) all.push(target);
    await this.#test.store.repository.write((writer) => writer.insert([...all, ...childKeys]));
    return { said: JSON.stringify(recipe), secret: secret.text, caller, target };
  }

  #key(fields: Partial<StoredKey>): StoredKey {
    this.#count += 1;
    const { now } = this.#test.time;
    const grants = { roles: [], permissions: [], ...fields };
    const text = createSecret(randomBytes);
    return storedKey(randomUUID(), {
      ...ofSecret(text),
      name: `Key ${this.#count}`,
      createdAt: now - 10_000,
      ...grants,
    });
  }
}

function ofSecret({ publicId, digest }: ReturnType<typeof createSecret>): Pick<StoredKey, 'publicId' | 'digest'> {
  return { publicId, digest };
}
