/** Keys of a backup that are brought back. */
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
