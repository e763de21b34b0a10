import { addFeatures, chooseFeatures, type FeatureHook } from 'svc-api/feature';

const feature = {
  name: 'svc-api-team',
  fields: { team: { kind: 'line', max: 50, label: 'Team', help: 'Team that uses the key.', filter: true } },
} as const;

// In a plugin of an oclif CLI.
export const hook: FeatureHook = async () => feature;

// In any other program, before it imports svc-api.
addFeatures(feature);

// To leave out all other features of svc-api, also before importing it.
chooseFeatures('consent', 'notices');
