import type { ApiKey, GivenFields } from './api-key.ts';
import { declarePort } from '../basics/index.ts';

/**
 * What a key did to another one: gave it a secret, widened it, enabled it, created it with a secret that another key
 * had issued; or created it, and the operator has adopted it since.
 */
export type EffectKind = 'SECRET' | 'WIDENING' | 'ENABLING' | 'CREATION' | 'ADOPTION';

/** The fields of a key before it was widened, as far as they were widened. */
export type NarrowerFields = Partial<Omit<GivenFields, 'name' | 'description'>>;

export interface Widening {
  readonly before: NarrowerFields;
  /** The grants that it got. */
  readonly added: Pick<ApiKey, 'roles' | 'permissions'>;
}

/** What a key did to another one, which may outlive it. */
export interface Effect {
  /** A UUID. */
  readonly id: string;
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly kind: EffectKind;
  /** The key that did it, by its latest name. */
  readonly actor: Pick<ApiKey, 'id' | 'name'>;
  /** The public id of the secret that it did it with; null where that is not known. */
  readonly bySecret: string | null;
  readonly keyId: string;
  /** The public id of the secret that this key got by it, or had; null where it got none. */
  readonly secret: string | null;
  /** Only of the kind WIDENING. */
  readonly widening: Widening | null;
}

/** Finds what keys did to others. */
export interface EffectFinder {
  /** What these keys did, or child keys of theirs, as they stood then. */
  by(keyIds: readonly string[]): Promise<Effect[]>;
  withSecrets(publicIds: readonly string[]): Promise<Effect[]>;
  /** What was done to these keys. */
  on(keyIds: readonly string[]): Promise<Effect[]>;
  /** The keys that did something, or was a parent key of one that did, by their id or latest name. */
  actorsNamed(nameOrId: string): Promise<Pick<ApiKey, 'id' | 'name'>[]>;
}

/** An effect, and the parent keys of the one that brought it about. */
export type NewEffect = Effect & { readonly above: readonly Pick<ApiKey, 'id' | 'name'>[] };

/** Keeps what keys did to others, in a transaction. */
export interface EffectWriter extends EffectFinder {
  /** Adds effects; those that are there already are passed over. */
  insert(effects: readonly NewEffect[]): Promise<void>;
  delete(ids: readonly string[]): Promise<void>;
  rename(keyId: string, name: string): Promise<void>;
  /** Lets a key that took the place of another one have done what that did, and have been done to what it was. */
  replaceKey(from: string, to: Pick<ApiKey, 'id' | 'name'>): Promise<void>;
  /** Those on these keys with all that is known of them, to be inserted elsewhere. */
  export(keyIds: readonly string[]): Promise<NewEffect[]>;
  /**
   * Forgets those before a time, in milliseconds since 1970, on keys that are there no longer and led to nothing: so
   * many, at most. @returns how many
   */
  forget(before: number, limit: number): Promise<number>;
}
export const EFFECTS = declarePort<EffectFinder, EffectWriter>('effects');
