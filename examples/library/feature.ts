import { addFeatures, chooseFeatures, type FeatureHook } from 'svc-api/feature';

const feature = {
  name: 'svc-api-team',
  fields: { team: { kind: 'line', max: 50, label: 'Team', help: 'Team that uses the key.', filter: true } },
} as const;

// In a plugin of an oclif CLI.
export const hook: FeatureHook = async () => feature;

// In any other program, before it imports svc-api.
addFeatures(feature);

// In a program that uses only these features of svc-api, and those that they need. Also before it imports svc-api.
chooseFeatures('consent', 'notices');
