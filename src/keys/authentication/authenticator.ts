import type { Activity } from './activity.ts';
import { type Authentication, lookUp } from './authenticate.ts';
import type { Catalog } from '../permissions/catalog.ts';
import { principalOf } from '../authorization/principal.ts';
import type { KeyRepository } from '../repository.ts';
import { digestSecret, prefixOf } from '../secret/secret.ts';
import { type VerifiedKey, VerifiedKeys } from './verified-keys.ts';

export interface AuthenticatorOptions {
  repository: KeyRepository;
  catalog: Catalog;
  /** Milliseconds since 1970. */
  clock: () => number;
  activity: Activity;
}

/** Lets keys in: it asks the store about a secret once, and again after the store has changed. */
export class Authenticator {
  readonly #options: AuthenticatorOptions;
  readonly #verified = new VerifiedKeys();

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
  }

  /** Who stands behind the secret of this digest, where that is known without asking the store. It counts as no use. */
  findVerified(digest: string): VerifiedKey | undefined {
    const { repository, clock } = this.#options;
    return this.#verified.get(digest, repository.revision(), clock());
  }

  /** Counts a use of a key. */
  countUse({ key, secret }: VerifiedKey): void {
    this.#options.activity.used(key, secret);
  }

  /** Finds out whose secret this is, which counts as a use of the key. @throws KeysError STORE_… */
  async authenticate(secret: string): Promise<Authentication> {
    const { repository, catalog, clock, activity } = this.#options;
    const digest = digestSecret(secret);
    const known = this.findVerified(digest);
    if (known) {
      this.countUse(known);
      return { principal: known.principal };
    }
    // Before the store is asked: what it answers may be older than a change that comes meanwhile.
    const revision = repository.revision();
    const found = await lookUp(secret, repository, clock());
    if (!found.refused) {
      const principal = principalOf(found.key, catalog, activity.observerOf(found.key));
      const verified = { ...found, principal };
      this.#verified.set(digest, revision, verified);
      this.countUse(verified);
      return { principal };
    }
    const { refused: reason, publicId, key } = found;
    activity.refused({
      reason,
      actor: { kind: 'REQUEST', id: null, name: publicId === undefined ? null : prefixOf(publicId) },
      key: key ? { id: key.id, name: key.name } : null,
    });
    return { refused: reason, ...(publicId !== undefined && { publicId }) };
  }
}
