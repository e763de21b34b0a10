/** Restores keys from a backup. */
export {
  type BringBack,
  type NamedKey,
  noteRestore,
  planRestore,
  restoreKeys,
  type RestorePlan,
  type Since,
  takenIds,
} from './restore.ts';
export type { KeptAspect } from './restored-key.ts';
