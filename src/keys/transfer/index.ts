/** Keys from elsewhere: export, import, what of a backup comes back, and keys that are declared in a file. */
export {
  type ChildLine,
  type ImportOutcome,
  IMPORTS,
  type ImportSpool,
  type KeyLine,
  type LineChain,
  type LineReport,
  type LineValue,
  type UniqueField,
} from './import.ts';
export {
  type GeneratedField,
  IMPORT_WARNINGS,
  type ImportLine,
  type ImportProblem,
  type ImportWarning,
} from './read-import.ts';
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
export { Transfer } from './transfer.ts';
export { type Applied, type AppliedKeys, Declarations } from './apply.ts';
export { assertValidDeclaration, DeclarationError, type DeclaredKey, readDeclaration } from './declaration.ts';
export { type ApplyRules, type Plan, type PlannedChanges, plannedChanges, plannedCreation } from './plan.ts';
