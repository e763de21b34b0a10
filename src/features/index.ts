import type { Feature } from '../feature.ts';
import { consent } from './consent/feature.ts';
import { contain } from './contain/feature.ts';
import { sessions } from './sessions/feature.ts';
import { spentLimits } from './spent-limits/feature.ts';

/** The features of svc-api, each after those that it needs. */
export const FEATURES: readonly Feature[] = [consent, contain, sessions, spentLimits];
