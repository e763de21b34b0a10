/** Keys from elsewhere: export, import, and what of a backup comes back. */
export {
  type ChildLine,
  type ImportEntry,
  type ImportOutcome,
  IMPORTS,
  type ImportSpool,
  type LineChain,
  type LineReport,
  type LineValue,
  OTHER_IMPORT,
  OUTDATED_IMPORT,
  type UniqueField,
} from './import.ts';
export type { ImportLine, ImportProblem, ImportWarning } from './read-import.ts';
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
