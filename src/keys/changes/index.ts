/** Changes of keys, each in a transaction: their rules, previews and listeners. */
export { changeKeys, type ManyChangeRequest, readManyChange, type UndeletingChange } from './change-many.ts';
export * from './confusable-names.ts';
export * from './create.ts';
export * from './issued.ts';
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
export * from './delivery.ts';
export { listenersOf } from './steps-of-plugins.ts';
export * from './transaction.ts';
export { adoptKey } from './adopt.ts';
export { deleteKeys } from './delete.ts';
export { requireChange, setKeyEnabled, type UpdatedKey, updateKey } from './update.ts';
