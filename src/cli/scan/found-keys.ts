import type { ApiKey } from '../../keys/key/api-key.ts';
import type { Identification } from '../../keys/authentication/identify.ts';
import { OPERATOR } from '../../keys/authorization/principal.ts';
import type { OpenKeys } from '../../open-keys.ts';

/** How many identified secrets are remembered, so that a repeated one is looked up once. */
const MAX_ENTRIES = 10_000;

export interface FoundKeysOptions {
  open: () => Promise<OpenKeys>;
  /** Called for each live key, after it was disabled. If undefined, no key is disabled. */
  onRevoked: ((key: ApiKey) => void) | undefined;
}

/** The keys whose secrets were found. The store is opened for the first one. */
export class FoundKeys {
  readonly #options: FoundKeysOptions;
  readonly #known = new Map<string, Identification>();
  readonly #live = new Set<string>();
  #revoked = 0;
  #keys: OpenKeys | undefined;

  constructor(options: FoundKeysOptions) {
    this.#options = options;
  }

  /** How many keys were live when they were found. */
  get live(): number {
    return this.#live.size;
  }

  /** How many of them were disabled. */
  get revoked(): number {
    return this.#revoked;
  }

  /** Identifies a secret's key, with its status when it was first found. @throws KeysError STORE_… */
  async identify(secret: string): Promise<Identification> {
    const known = this.#known.get(secret);
    if (known) return known;
    this.#keys ??= await this.#options.open();
    const found = await this.#keys.identify(secret, OPERATOR);
    if ('key' in found && found.status === 'ACTIVE') await this.#foundLive(found.key, this.#keys);
    if (this.#known.size >= MAX_ENTRIES) this.#known.clear();
    this.#known.set(secret, found);
    return found;
  }

  async close(): Promise<void> {
    await this.#keys?.close();
  }

  async #foundLive(key: ApiKey, keys: OpenKeys): Promise<void> {
    this.#live.add(key.id);
    const { onRevoked } = this.#options;
    if (!onRevoked) return;
    const { before, after } = await keys.setEnabled(key.id, false, OPERATOR);
    if (before.disabledAt !== null) return;
    this.#revoked += 1;
    onRevoked(after);
  }
}
