import type { KeysOptions } from '../../src/keys/service/service.ts';

/** Seeded random choices, so that a failure can be reproduced. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number from 0 up to, but not including, 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 4_294_967_296;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.next() * items.length)]!;
  }

  some<Item>(items: readonly Item[], most: number): Item[] {
    return Array.from({ length: 1 + Math.floor(this.next() * most) }, () => this.pick(items));
  }
}

/** Bytes and ids that are the same in every run, so that pictures do not change. */
export function steadyRandomness(): Pick<KeysOptions, 'randomBytes' | 'randomId'> {
  const random = new Random(1);
  const randomBytes = (size: number) =>
    Buffer.from(Array.from({ length: size }, () => Math.floor(random.next() * 256)));
  const randomId = () => {
    const hex = randomBytes(16).toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  };
  return { randomBytes, randomId };
}
