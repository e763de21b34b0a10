import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { isRecord, readBounded } from '../keys/basics/index.ts';

const WAIT_MS = 5000;
const MAX_BYTES = 256 * 1024;
/** How long keys are kept, and how often at most unknown ones are asked for, in milliseconds. */
const KEPT_MS = 3_600_000;
const AGAIN_MS = 60_000;
const MAX_ID_LENGTH = 200;

/**
 * The public keys by which GitHub signs what it tells partners of its secret scanning: ECDSA on P-256, of the SHA-256
 * of the body. They are fetched when they are needed, once for all that wait.
 */
export class GithubKeys {
  readonly #address: string;
  readonly #elapsed: () => number;
  #keys: ReadonlyMap<string, KeyObject> = new Map();
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #fetching: Promise<void> | undefined;

  /** @param elapsed milliseconds since any moment, which nobody can set */
  constructor(address: string, elapsed: () => number = () => performance.now()) {
    this.#address = address;
    this.#elapsed = elapsed;
  }

  /**
   * Whether a body has a signature, in base64, by the key of this id.
   * @throws Error if the keys cannot be fetched
   */
  async isSigned(body: Uint8Array, { id, signature }: { id: string; signature: string }): Promise<boolean> {
    if (id === '' || id.length > MAX_ID_LENGTH) return false;
    const age = this.#elapsed() - this.#fetchedAt;
    if (age > (this.#keys.has(id) ? KEPT_MS : AGAIN_MS))
      await (this.#fetching ??= this.#fetch().finally(() => (this.#fetching = undefined)));
    const key = this.#keys.get(id);
    return key !== undefined && verify('sha256', body, key, Buffer.from(signature, 'base64'));
  }

  async #fetch(): Promise<void> {
    const response = await fetch(this.#address, {
      headers: { Accept: 'application/json', 'User-Agent': 'svc-api' },
      redirect: 'error',
      signal: AbortSignal.timeout(WAIT_MS),
    });
    const text = String((await readBounded(response.body, MAX_BYTES)) ?? '');
    if (!response.ok) throw new Error(`the public keys of GitHub were answered by ${response.status}`);
    const { public_keys: list } = JSON.parse(text) as { public_keys?: unknown };
    if (!Array.isArray(list)) throw new Error('the public keys of GitHub are no list');
    this.#keys = new Map(list.flatMap((item: unknown) => (isRecord(item) ? keyIn(item) : [])));
    this.#fetchedAt = this.#elapsed();
  }
}

function keyIn({ key_identifier: id, key: text }: Record<string, unknown>): [string, KeyObject][] {
  if (typeof id !== 'string' || typeof text !== 'string') return [];
  const key = createPublicKey(text);
  return key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? [[id, key]] : [];
}
