/** Restored keys of a backup, and keys that are declared in a file. */
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
export { type Applied, type AppliedKeys, Declarations } from './apply.ts';
export { assertValidDeclaration, DeclarationError, type DeclaredKey, readDeclaration } from './declaration.ts';
export { type ApplyRules, type Plan, type PlannedChanges, plannedChanges, plannedCreation } from './plan.ts';
