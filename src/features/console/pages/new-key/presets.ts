import { RESOURCES } from '../../../../keys/permissions/index.ts';
import { type ChosenGrants, type Grantable, permissionsOf } from '../../parts/grants.ts';

/** Permissions for a common purpose. */
export interface Preset {
  /** Its value in the form. */
  readonly id: string;
  readonly title: string;
  readonly permissions: readonly string[];
}

const BUILT_IN: ReadonlySet<string> = new Set([...RESOURCES, 'EDGE']);

const PRESETS: readonly Preset[] = [
  { id: 'deploy', title: 'Deploy services', permissions: ['SERVICES:READ_ANY', 'SERVICES:UPDATE_ANY'] },
  {
    id: 'monitor',
    title: 'Monitor',
    permissions: ['DASHBOARD', 'INFO', 'NETWORK', 'NOTIFICATIONS', 'SERVICES'].map(
      (resource) => `${resource}:READ_ANY`,
    ),
  },
  { id: 'audit', title: 'Audit', permissions: ['API_KEY:READ_ANY', 'LOGS:READ_ANY', 'PERMISSION:READ_ANY'] },
];

/** Maximum number of presets for resources of the installation. */
const MAX_OWN = 4;

/** Presets that the person can grant completely: those of guarded services first, then the common ones. */
export function presetsOf(grantable: Grantable): Preset[] {
  const held = new Set(permissionsOf(grantable.permissions));
  const own = grantable.offered
    .filter((resource) => !BUILT_IN.has(resource) && held.has(`${resource}:READ_ANY`))
    .slice(0, MAX_OWN)
    .map((resource) => ({ id: resource, title: `Read ${resource}`, permissions: [`${resource}:READ_ANY`] }));
  const offered = new Set(grantable.offered);
  const canBe = (permission: string) => held.has(permission) && offered.has(permission.split(':')[0]!);
  return [...own, ...PRESETS.filter(({ permissions }) => permissions.every(canBe))];
}

/** The name and value of the button that fills in a preset. */
export const PRESET = 'preset:';

/** Replaces the chosen permissions by those of a preset. */
export function withPreset<Chosen extends ChosenGrants>(chosen: Chosen, step: string, grantable: Grantable): Chosen {
  const preset = presetsOf(grantable).find(({ id }) => step === PRESET + id);
  return preset ? { ...chosen, permissions: preset.permissions } : chosen;
}
