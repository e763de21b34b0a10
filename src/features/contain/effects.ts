import { randomUUID } from 'node:crypto';
import { type Chain, findChain, OPERATOR } from '../../keys/authorization/index.ts';
import { declarePort, yielding } from '../../keys/basics/index.ts';
import type { ApiKey } from '../../keys/key/index.ts';
import type { Catalog } from '../../keys/permissions/index.ts';
import type { Transaction, WrittenKey } from '../../keys/changes/index.ts';
import { findWidening, isStillWidened, type Widening } from './widening.ts';

/**
 * Kinds of effects of one key on another: a new secret, wider access, enabling, creation with a secret that another
 * key had issued, or creation followed by an adoption by the operator.
 */
export type EffectKind = 'SECRET' | 'WIDENING' | 'ENABLING' | 'CREATION' | 'ADOPTION';

type NamedKey = Pick<ApiKey, 'id' | 'name'>;

/** An effect of one key on another. It can outlive the key that did it. */
export interface Effect {
  /** A UUID. */
  readonly id: string;
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly kind: EffectKind;
  /** The id of the key that did it. */
  readonly actorId: string;
  /** The public id of the secret that it did it with; null where that is not known. */
  readonly bySecret: string | null;
  readonly keyId: string;
  /** The public id of the secret that this key got by it, or had; null where it got none. */
  readonly secret: string | null;
  /** Only of the kind WIDENING. */
  readonly widening: Widening | null;
}

/** An effect with the key that did it and the parent keys of that, by their latest names. */
export interface NewEffect extends Effect {
  readonly actors: readonly NamedKey[];
}

/** Read access to effects. */
export interface EffectFinder {
  /** Effects by these keys and by the child keys that they had then. */
  by(keyIds: readonly string[]): Promise<Effect[]>;
  withSecrets(publicIds: readonly string[]): Promise<Effect[]>;
  /** Effects on these keys. */
  on(keyIds: readonly string[]): Promise<Effect[]>;
  /** The keys that did something, or was a parent key of one that did, by their id or latest name. */
  actorsNamed(nameOrId: string): Promise<NamedKey[]>;
}

/** Write access to effects, in a transaction. */
export interface EffectWriter extends EffectFinder {
  /** Adds effects, except those that are there already. */
  insert(effects: readonly NewEffect[]): Promise<void>;
  delete(ids: readonly string[]): Promise<void>;
  rename(key: NamedKey): Promise<void>;
  /** Transfers the effects by and on a replaced key to the key that replaces it. */
  replaceKey(from: string, to: NamedKey): Promise<void>;
  /** Effects on these keys, to insert elsewhere. */
  export(keyIds: readonly string[]): Promise<NewEffect[]>;
}
export const EFFECTS = declarePort<EffectFinder, EffectWriter>('effects');

/**
 * Records effects that outlive the key that caused them, and forgets those that the changes end. The audit log has them
 * as well, but can be pruned. Effects on own child keys are left out, because these are deleted together, unless
 * another key issued the secret in use: then that key caused them. Call this before the changes are written: when
 * parent and child are adopted together, each must be found where it was.
 */
export async function recordEffects(place: Transaction, changes: readonly WrittenKey[]): Promise<void> {
  const { caller, catalog } = place;
  const effects = place.port(EFFECTS);
  const actor = caller === OPERATOR || place.isUndoing ? undefined : caller;
  const own = actor ? await effects.on([actor.apiKey.id]) : [];
  const isBorrowed = own.some(({ secret }) => secret === actor?.apiKey.publicId);
  const known = Map.groupBy(await effects.on(changes.flatMap(({ before }) => before?.id ?? [])), ({ keyId }) => keyId);
  const added: NewEffect[] = [];
  const over: Effect[] = [];
  for await (const { before, after } of yielding(changes)) {
    if (before?.id !== after.id) {
      const kind = after.createdBy === actor?.apiKey.id ? 'CREATION' : 'SECRET';
      if (actor && isBorrowed) added.push(newEffect(place, actor.chain, after.id, kind, { secret: after.publicId }));
      continue;
    }
    const done = known.get(after.id) ?? [];
    if (before.name !== after.name) await effects.rename(after);
    if (before.createdBy !== null && after.createdBy === null) added.push(...(await adoptionsOf(place, before, done)));
    const made = actor ? effectsOf(place, actor.chain, { before, after }, done) : [];
    if (made.length > 0 && (isBorrowed || !(await isDescendant(place, before, actor!.apiKey)))) added.push(...made);
    over.push(...done.filter((effect) => !mayBeInForce(effect, after, catalog)));
  }
  await effects.insert(added);
  // An effect whose secret brought about others is kept, as it leads to them. An adoption takes over from a creation.
  const leading = over.flatMap(({ kind, secret }) => (secret === null || kind === 'CREATION' ? [] : secret));
  const led = new Set((await effects.withSecrets([...new Set(leading)])).map(({ bySecret }) => bySecret));
  await effects.delete(over.filter(({ kind, secret }) => kind === 'CREATION' || !led.has(secret)).map(({ id }) => id));
  for (const { before, after } of changes)
    if (before && before.id !== after.id) await effects.replaceKey(before.id, after);
}

async function isDescendant({ find }: Transaction, key: ApiKey, { id: above }: ApiKey): Promise<boolean> {
  return key.createdBy === above || (await findChain(find, key)).keys.some(({ id }) => id === above);
}

/** The effects of a change of a key that an actor makes. */
function effectsOf(
  place: Transaction,
  chain: Chain,
  { before, after }: { before: ApiKey; after: ApiKey },
  known: readonly Effect[],
): NewEffect[] {
  const make = (kind: EffectKind, what: Partial<Pick<Effect, 'secret' | 'widening'>> = {}) =>
    newEffect(place, chain, after.id, kind, what);
  const made: NewEffect[] = [];
  // A key that rolls its own rotation back leaves the secret that was there before.
  const takesBack = ({ secret, actorId }: Effect) => secret === before.publicId && actorId === chain.keys[0].id;
  const isOther = before.publicId !== after.publicId;
  if (isOther && !(before.rotation?.previousPublicId === after.publicId && known.some(takesBack)))
    made.push(make('SECRET', { secret: after.publicId }));
  if (before.disabledAt !== null && after.disabledAt === null) made.push(make('ENABLING'));
  const widening = findWidening(before, after, place.catalog);
  if (widening) made.push(make('WIDENING', { widening }));
  return made;
}

/**
 * An adopted key and its child keys lose the parent key that can know their secrets. That key counts as the issuer of
 * these secrets.
 */
async function adoptionsOf(place: Transaction, adopted: ApiKey, known: readonly Effect[]): Promise<NewEffect[]> {
  const { keys } = await findChain(place.find, adopted);
  const [creator, ...above] = keys.slice(1);
  if (!creator) return [];
  const creation = known.find(({ kind }) => kind === 'CREATION');
  const bySecret = creation?.bySecret ?? null;
  const family = await place.find.findWithDescendants([adopted.id]);
  return family.flatMap(({ id, publicId, rotation }) => {
    const secrets = new Set([publicId, ...(rotation ? [rotation.previousPublicId] : [])]);
    // The first secret leads to the changes made with it.
    if (creation?.secret && id === adopted.id) secrets.add(creation.secret);
    return Array.from(secrets, (secret) => {
      const chain = { keys: [creator, ...above], isComplete: true } as const;
      return { ...newEffect(place, chain, id, 'ADOPTION', { secret }), bySecret };
    });
  });
}

function newEffect(
  { now }: Pick<Transaction, 'now'>,
  { keys }: Chain,
  keyId: string,
  kind: EffectKind,
  { secret = null, widening = null }: Partial<Pick<Effect, 'secret' | 'widening'>> = {},
): NewEffect {
  const by = { actorId: keys[0].id, bySecret: keys[0].publicId, actors: keys.map(({ id, name }) => ({ id, name })) };
  return { id: randomUUID(), at: now, kind, ...by, keyId, secret, widening };
}

/** Tells whether an effect can still be in force, by the present state of the key. */
export function mayBeInForce({ kind, secret, widening }: Effect, key: ApiKey, catalog: Catalog): boolean {
  switch (kind) {
    case 'SECRET':
    case 'ADOPTION':
      return key.publicId === secret || key.rotation?.previousPublicId === secret;
    case 'ENABLING':
      return key.disabledAt === null;
    case 'CREATION':
      return key.createdBy !== null;
    default:
      return isStillWidened(widening!, key, catalog);
  }
}
