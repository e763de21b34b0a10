import type { Feature } from '../feature.ts';
import { addedFeatures } from '../keys/added/index.ts';
import { apply } from './apply/feature.ts';
import { backup } from './backup/feature.ts';
import { completion } from './completion/feature.ts';
import { consent } from './consent/feature.ts';
import { console } from './console/feature.ts';
import { contain } from './contain/feature.ts';
import { doctor } from './doctor/feature.ts';
import { edge } from './edge/feature.ts';
import { edges } from './edges/feature.ts';
import { federation } from './federation/feature.ts';
import { guard } from './guard/feature.ts';
import { leaks } from './leaks/feature.ts';
import { login } from './login/feature.ts';
import { nats } from './nats/feature.ts';
import { notices } from './notices/feature.ts';
import { people } from './people/feature.ts';
import { review } from './review/feature.ts';
import { routes } from './routes/feature.ts';
import { scan } from './scan/feature.ts';
import { sessions } from './sessions/feature.ts';
import { spentLimits } from './spent-limits/feature.ts';
import { telemetry } from './telemetry/feature.ts';
import { transfer } from './transfer/feature.ts';
import { unusedKeys } from './unused-keys/feature.ts';
import { usage } from './usage/feature.ts';

// Programs get the types of their configuration: the declarations that tsc writes have no other import of them.
export type * from './consent/feature.ts';
export type * from './federation/feature.ts';
export type * from './guard/feature.ts';
export type * from './nats/feature.ts';
export type * from './notices/feature.ts';
export type * from './people/feature.ts';
export type * from './routes/feature.ts';

/** The features of svc-api, each after those that it needs. */
export const FEATURES: readonly Feature[] = [
  people,
  routes,
  sessions,
  consent,
  guard,
  edge,
  contain,
  federation,
  edges,
  leaks,
  nats,
  notices,
  spentLimits,
  telemetry,
  transfer,
  unusedKeys,
  console,
  apply,
  backup,
  completion,
  doctor,
  login,
  review,
  scan,
  usage,
];

/** The features of svc-api, then those of plugins. @throws KeysError FEATURE_INVALID if a plugin needs one that is not there */
export function allFeatures(): readonly Feature[] {
  return [...FEATURES, ...addedFeatures(FEATURES.map(({ name }) => name))];
}
