/** Keys from elsewhere: export, import, and what of a backup comes back. */
export {
  type BatchEntry,
  type ImportReport,
  type LineReport,
  STAGED_KEYS,
  type StagedKeys,
  STAGING,
} from './import.ts';
export {
  type BringBack,
  type KeptAspect,
  type NamedKey,
  noteRestore,
  planRestore,
  restoreKeys,
  type RestorePlan,
  type Since,
  takenIds,
} from './restore.ts';
export { Transfer } from './transfer.ts';
