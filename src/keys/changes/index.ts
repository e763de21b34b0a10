/** Changes of keys, each in a transaction, what outlives the key that did it, and what can be foreseen. */
export {
  attest,
  type Attestation,
  changeKeys,
  type ManyChangeRequest,
  readAttestation,
  readManyChange,
  type UndeletingChange,
} from './change-many.ts';
export {
  type Contained,
  containedAs,
  type ContainmentOperations,
  Containments,
  type ContainRequest,
  type Issued,
  type IssuedKind,
  type KeyName,
  type Leak,
  Leaks,
  type NamedIssue,
  namedIssues,
  operatorContainments,
} from './contain.ts';
export * from './create.ts';
export {
  type Effect,
  type EffectFinder,
  type EffectKind,
  EFFECTS,
  type EffectWriter,
  type NewEffect,
} from './effects.ts';
export * from './permitted-changes.ts';
export {
  activateRotation,
  findUnused,
  finishRotation,
  type KeyRotation,
  revertRotation,
  rollBackRotation,
  rotatedKey,
  rotateKey,
  startGrace,
} from './rotate.ts';
export * from './transaction.ts';
export { KEYS_IN_USE, UnusedKeys } from './unused-keys.ts';
export { adoptKey, deleteKeys, setKeyEnabled, type UpdatedKey, updateKey } from './update.ts';
export type { Widening } from './widening.ts';
