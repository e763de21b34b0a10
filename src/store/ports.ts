import type { Port } from '../keys/basics/index.ts';
import type { AnyPortOfStore } from './port-of-store.ts';
import { keyLists } from './key-lists.ts';
import { policyEntries } from './policy-entries.ts';
import { use } from './use.ts';
import { usedLimits } from './used-limits.ts';
import { usedTokens } from './used-tokens.ts';

/** Ports of the core. */
export const PORTS: readonly AnyPortOfStore[] = [keyLists, policyEntries, use, usedLimits, usedTokens];

/** The implementation of a port. */
export function portIn<Reader, Writer extends Reader>(
  ports: readonly AnyPortOfStore[],
  wanted: Port<Reader, Writer>,
): AnyPortOfStore {
  const found = ports.find(({ port }) => port === wanted);
  if (!found) throw new Error(`The store keeps nothing for "${wanted.name}".`);
  return found;
}
