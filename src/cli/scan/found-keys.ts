import type { ApiKey } from '../../keys/key/api-key.ts';
import type { Identification } from '../../keys/authentication/identify.ts';
import { OPERATOR } from '../../keys/authorization/principal.ts';
import type { Leak } from '../../keys/changes/note-leak.ts';
import { isKeysError, type KeysError } from '../../keys/errors.ts';
import type { OpenKeys } from '../../open-keys.ts';

/** How many identified secrets are remembered, so that a repeated one is looked up once. */
const MAX_ENTRIES = 10_000;

/** The keys whose secrets were found. */
export class FoundKeys {
  readonly #keys: OpenKeys;
  readonly #onRevoked: ((key: ApiKey) => Promise<void>) | undefined;
  readonly #known = new Map<string, Identification>();
  readonly #live = new Set<string>();
  #revoked = 0;
  #unnoted: KeysError | undefined;

  /** @param onRevoked called for each key after it was disabled; if undefined, none is */
  constructor(keys: OpenKeys, onRevoked: ((key: ApiKey) => Promise<void>) | undefined) {
    this.#keys = keys;
    this.#onRevoked = onRevoked;
  }

  /** How many keys were live when they were found. */
  get live(): number {
    return this.#live.size;
  }

  /** Why not all that was found is in the audit log; undefined if it is. */
  get unnoted(): KeysError | undefined {
    return this.#unnoted;
  }

  /** How many keys were disabled. */
  get revoked(): number {
    return this.#revoked;
  }

  /**
   * Identifies a secret's key, with its status when it was first found. That it works is noted in the audit log.
   * @throws KeysError STORE_…
   */
  async identify(secret: string, place: string): Promise<Identification> {
    const known = this.#known.get(secret);
    if (known) return known;
    const found = await this.#keys.identify(secret, OPERATOR);
    if ('apiKey' in found && found.status === 'ACTIVE') this.#live.add(found.apiKey.id);
    // One that is refused only for a key above it would be live again with that one.
    if ('apiKey' in found && found.status !== 'ROTATED' && this.#isActiveByItself(found.apiKey)) {
      await this.#note({ id: found.apiKey.id, publicId: found.publicId, place });
      await this.#revoke(found.apiKey);
    }
    if (this.#known.size >= MAX_ENTRIES) this.#known.clear();
    this.#known.set(secret, found);
    return found;
  }

  /** What cannot be noted, as in a store that can only be read, is found nonetheless. */
  async #note(leak: Leak): Promise<void> {
    if (this.#unnoted) return;
    try {
      await this.#keys.noteLeak(leak);
    } catch (error) {
      if (!isKeysError(error) || !error.code.startsWith('STORE_')) throw error;
      this.#unnoted = error;
    }
  }

  #isActiveByItself(key: ApiKey): boolean {
    return this.#keys.statusOf({ keys: [key], isComplete: true }) === 'ACTIVE';
  }

  async #revoke(key: ApiKey): Promise<void> {
    if (!this.#onRevoked) return;
    const { before, after } = await this.#keys.setEnabled(key.id, false, OPERATOR);
    if (before.disabledAt !== null) return;
    this.#revoked += 1;
    await this.#onRevoked(after);
  }
}
