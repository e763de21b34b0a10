/** Keys as they are declared in a file: what is declared, planned and applied. */
export { type Applied, type ApplyOperations, Declarations, ENDS_AT_ONCE, OperatorDeclarations } from './apply.ts';
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
