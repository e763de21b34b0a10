import type { Hook, Hooks } from '@oclif/core/interfaces';
import { addFields } from './keys/added/index.ts';
import type { Feature } from './feature.ts';
import { takenNames } from './cli/plugins/taken-names.ts';

export type { Feature, FeatureContext } from './feature.ts';
export type { AddedField, AddedFields, ChoiceField, LineField, ListField, NumberField } from './keys/added/index.ts';

/**
 * The oclif hook `svc-api:feature`.
 * @example
 * const hook: FeatureHook = async () => ({ name: 'svc-api-team', fields: { team: { kind: 'line', label: 'Team', help: 'Team of the key.' } } });
 * export default hook;
 */
export type FeatureHook = Hook<
  'svc-api:feature',
  Hooks & { 'svc-api:feature': { options: Record<string, unknown>; return: Feature | undefined } }
>;

/**
 * Adds features in a program that is no oclif CLI. Call it in a module of its own, which is imported before `svc-api`.
 * @throws KeysError FEATURE_INVALID, also once svc-api is loaded
 */
export function addFeatures(...features: readonly Feature[]): void {
  addFields(features, takenNames());
}
