import type { Activity } from './activity.ts';
import { type Authentication, lookUp } from './authenticate.ts';
import type { Catalog } from '../permissions/catalog.ts';
import { chainExpiry } from '../authorization/chain.ts';
import { principalOf } from '../authorization/principal.ts';
import type { KeyRepository } from '../repository.ts';
import { digestSecret, prefixOf } from '../secret/secret.ts';
import { type VerifiedKey, VerifiedKeys } from './verified-keys.ts';

/** What an authenticator needs from outside. */
export interface AuthenticatorOptions {
  repository: KeyRepository;
  catalog: Catalog;
  /** Milliseconds since 1970. */
  clock: () => number;
  /** Records uses and refusals. */
  activity: Activity;
}

/** Authenticates secrets. It looks each one up once, and again only after the store has changed. */
export class Authenticator {
  readonly #options: AuthenticatorOptions;
  readonly #verified = new VerifiedKeys();

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
  }

  /** The key whose secret has this digest, if that is known without a query. Does not count as a use. */
  findVerified(digest: string): VerifiedKey | undefined {
    const { repository, clock } = this.#options;
    return this.#verified.get(digest, repository.revision(), clock());
  }

  /** Counts a use of a key. */
  countUse({ principal: { key, secret } }: Pick<VerifiedKey, 'principal'>): void {
    this.#options.activity.used(key, secret);
  }

  /**
   * Authenticates a secret, which counts as a use of its key.
   * @param address the client's, for the audit log
   * @throws KeysError STORE_…
   */
  async authenticate(secret: string, address?: string): Promise<Authentication> {
    const result = await this.confirm(secret, address);
    if ('principal' in result) this.countUse(result);
    return result;
  }

  /** Authenticates a secret, of a request that was let in before, without counting a use. @throws KeysError STORE_… */
  async confirm(secret: string, address?: string): Promise<Authentication> {
    const { repository, catalog, clock, activity } = this.#options;
    const digest = digestSecret(secret);
    const known = this.findVerified(digest);
    if (known) return { principal: known.principal };
    // Read before the query, whose result may be older than a change that is made meanwhile.
    const revision = repository.revision();
    const found = await lookUp(secret, repository, clock());
    if (!found.refused) {
      const { key, chain, secret: presented } = found;
      const observer = activity.observerOf(key);
      const principal = principalOf(chain, catalog, { secret: presented, observer });
      this.#verified.set(digest, revision, { principal, expiresAt: chainExpiry(chain) });
      return { principal };
    }
    const { refused: reason, publicId, key } = found;
    activity.refused({
      reason,
      actor: { kind: 'REQUEST', id: null, name: publicId === undefined ? null : prefixOf(publicId) },
      key: key ? { id: key.id, name: key.name } : null,
      address,
    });
    return { refused: reason, ...(publicId !== undefined && { publicId }) };
  }
}
