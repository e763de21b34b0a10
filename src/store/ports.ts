import type { Port } from '../keys/basics/index.ts';
import type { AnyPortOfStore } from './port-of-store.ts';
import { consents } from './consents.ts';
import { feed } from './feed.ts';
import { imports } from './imports.ts';
import { keyEffects } from './key-effects.ts';
import { keyLists } from './key-lists.ts';
import { keysInUse } from './keys-in-use.ts';
import { sessions } from './sessions.ts';
import { spentLimits } from './spent-limits.ts';
import { usage } from './usage.ts';
import { usedTokens } from './used-tokens.ts';

/** What the store keeps for features, each as the feature asks for it. */
export const PORTS: readonly AnyPortOfStore[] = [
  consents,
  feed,
  imports,
  keyEffects,
  keyLists,
  keysInUse,
  sessions,
  spentLimits,
  usage,
  usedTokens,
];

/** How the store does what a feature asks of it. */
export function portIn<Reader, Writer extends Reader>(wanted: Port<Reader, Writer>): AnyPortOfStore {
  const found = PORTS.find(({ port }) => port === wanted);
  if (!found) throw new Error(`The store keeps nothing for "${wanted.name}".`);
  return found;
}
