import { addedFeatures, gatherErrors, invalidFeature, isAdded, isChosen, workOf } from '../keys/added/index.ts';
import type { Config } from '../config/config.ts';
import { CORE_SECTIONS } from '../config/section-names.ts';
import { OPERATIONS } from '../keys/operations/index.ts';
import { addBuiltInResources } from '../keys/permissions/index.ts';
import { type CommandAddition, type OwnFeature, storesOf } from '../feature.ts';
import type { FeatureInStore } from '../store/index.ts';
import { apply } from './apply/feature.ts';
import { backup } from './backup/feature.ts';
import { completion } from './completion/feature.ts';
import { consent } from './consent/feature.ts';
import { console } from './console/feature.ts';
import { contain } from './contain/feature.ts';
import { doctor } from './doctor/feature.ts';
import { edge } from './edge/feature.ts';
import { edges } from './edges/feature.ts';
import { exec } from './exec/feature.ts';
import { federation } from './federation/feature.ts';
import { guard } from './guard/feature.ts';
import { leaks } from './leaks/feature.ts';
import { login } from './login/feature.ts';
import { nats } from './nats/feature.ts';
import { notices } from './notices/feature.ts';
import { people } from './people/feature.ts';
import { plugins } from './plugins/feature.ts';
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
export const FEATURES: readonly OwnFeature[] = [
  people,
  routes,
  usage,
  sessions,
  consent,
  guard,
  edge,
  contain,
  unusedKeys,
  federation,
  edges,
  leaks,
  nats,
  notices,
  spentLimits,
  telemetry,
  backup,
  transfer,
  console,
  apply,
  completion,
  doctor,
  login,
  exec,
  plugins,
  review,
  scan,
];

addBuiltInResources(FEATURES.flatMap(({ resources = [] }) => resources));

/**
 * The features of svc-api that were chosen, then those of plugins. The error codes of all features are known from then
 * on, as those that were not chosen still listen.
 * @throws KeysError FEATURE_INVALID if a plugin needs one that is not there, or has a name, an operation, a section, a channel
 * or a code that is taken
 */
export function allFeatures(): readonly OwnFeature[] {
  const own = FEATURES.filter(({ name }) => isChosen(name));
  const added: readonly OwnFeature[] = addedFeatures(FEATURES.map(({ name }) => name));
  const all = [...own, ...added];
  requireUnique(all, 'an operation', ({ operations }) => operations, Object.keys(OPERATIONS));
  requireUnique(all, 'a section', ({ config }) => config?.sections, ['$schema', ...CORE_SECTIONS]);
  // Plugins can have channels also where the feature that uses them was deleted.
  requireUnique(all, 'a channel of notices', (feature: object) => (feature as { notices?: object }).notices);
  requireUnique([...FEATURES, ...added], 'a resource', resourcesOf);
  gatherErrors([...FEATURES, ...added]);
  return all;
}

/** Additions of the chosen features to a command of the core. @param id such as `apikey:list` */
export function additionsTo(id: string): CommandAddition[] {
  return FEATURES.filter(({ name }) => isChosen(name)).flatMap(({ commands }) => commands?.[id] ?? []);
}

/**
 * All features, also those that were not chosen: a host that chose them can have written their rows to the store, and
 * these change with its keys.
 */
export function keepingFeatures(): readonly OwnFeature[] {
  return [...FEATURES, ...allFeatures().filter(isAdded)];
}

/** The fields of a configuration that features have in the catalog. */
export function additionsOfFeatures(config: Config): object {
  const names = keepingFeatures().flatMap((feature) => Object.keys(feature.config?.additions ?? {}));
  return Object.fromEntries(names.map((name) => [name, config[name as keyof Config]]));
}

/**
 * Loads the stores of all features, before a store is opened.
 * @throws KeysError FEATURE_INVALID for invalid table names of a plugin
 */
export async function allStores(): Promise<FeatureInStore[]> {
  const added: FeatureInStore[] = [];
  for (const plugin of allFeatures().filter(isAdded))
    added.push(...(await workOf(plugin, 'store', () => storesOf([plugin]))));
  if (added.length > 0) (await import('../store/features.ts')).requireKept(added);
  return [...(await storesOf(FEATURES)), ...added];
}

/** The resources of a feature, by name. */
function resourcesOf({ resources = [] }: OwnFeature): object {
  return Object.fromEntries(resources.map((each) => [typeof each === 'string' ? each : each.name, each]));
}

/** @throws KeysError FEATURE_INVALID for a feature that gives something a name that is taken */
function requireUnique(
  all: readonly OwnFeature[],
  what: string,
  namedBy: (feature: OwnFeature) => object | undefined,
  ofCore: readonly string[] = [],
): void {
  const taken = new Set(ofCore);
  for (const feature of all)
    for (const given of Object.keys(namedBy(feature) ?? {})) {
      if (taken.has(given))
        throw invalidFeature(feature.name, `svc-api or another plugin has ${what} "${given}" as well. Rename it.`);
      taken.add(given);
    }
}
