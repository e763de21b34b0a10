import type { Feature } from '../feature.ts';
import { consent } from './consent/feature.ts';
import { contain } from './contain/feature.ts';
import { edges } from './edges/feature.ts';
import { leaks } from './leaks/feature.ts';
import { sessions } from './sessions/feature.ts';
import { spentLimits } from './spent-limits/feature.ts';
import { transfer } from './transfer/feature.ts';
import { unusedKeys } from './unused-keys/feature.ts';

/** The features of svc-api, each after those that it needs. */
export const FEATURES: readonly Feature[] = [
  consent,
  contain,
  edges,
  leaks,
  sessions,
  spentLimits,
  transfer,
  unusedKeys,
];
