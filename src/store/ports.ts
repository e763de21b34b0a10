import type { Port } from '../keys/port.ts';
import type { AnyPortOfStore } from './connection.ts';
import { consents } from './consent-requests.ts';
import { keyEffects } from './key-effects.ts';
import { keysInUse } from './keys-in-use.ts';
import { spentLimits } from './limit-states.ts';
import { sessions } from './sessions.ts';
import { stagedKeys, staging } from './staged-keys.ts';
import { usage } from './usage.ts';

/** What the store keeps for features, each as the feature asks for it. */
export const PORTS: readonly AnyPortOfStore[] = [
  consents,
  keyEffects,
  keysInUse,
  sessions,
  spentLimits,
  stagedKeys,
  staging,
  usage,
];

/** How the store does what a feature asks of it. */
export function portIn<Reader, Writer extends Reader>(wanted: Port<Reader, Writer>): AnyPortOfStore {
  const found = PORTS.find(({ port }) => port === wanted);
  if (!found) throw new Error(`The store keeps nothing for "${wanted.name}".`);
  return found;
}
