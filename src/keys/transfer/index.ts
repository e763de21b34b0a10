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
export { type Applied, type ApplyOperations, Declarations, ENDS_AT_ONCE, operatorDeclarations } from './apply.ts';
export {
  type ApplyRules,
  assertValidDeclaration,
  DeclarationError,
  type DeclaredKey,
  type Plan,
  type PlannedChanges,
  plannedCreation,
  readDeclaration,
} from './declaration.ts';
