import type { Feature } from '../feature.ts';
import { consent } from './consent/feature.ts';
import { console } from './console/feature.ts';
import { contain } from './contain/feature.ts';
import { edge } from './edge/feature.ts';
import { edges } from './edges/feature.ts';
import { federation } from './federation/feature.ts';
import { guard } from './guard/feature.ts';
import { leaks } from './leaks/feature.ts';
import { nats } from './nats/feature.ts';
import { notices } from './notices/feature.ts';
import { people } from './people/feature.ts';
import { routes } from './routes/feature.ts';
import { sessions } from './sessions/feature.ts';
import { spentLimits } from './spent-limits/feature.ts';
import { telemetry } from './telemetry/feature.ts';
import { transfer } from './transfer/feature.ts';
import { unusedKeys } from './unused-keys/feature.ts';

/** The features of svc-api, each after those that it needs. */
export const FEATURES: readonly Feature[] = [
  people,
  routes,
  sessions,
  consent,
  contain,
  federation,
  edge,
  edges,
  leaks,
  nats,
  notices,
  spentLimits,
  telemetry,
  transfer,
  unusedKeys,
  console,
  guard,
];
