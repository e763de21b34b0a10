import { KeysError, printable } from '../basics/index.ts';

/** An error that names a feature. */
export function invalidFeature(name: string, problem: string, cause?: unknown): KeysError {
  return new KeysError('FEATURE_INVALID', `The feature ${printable(name)} is invalid. ${problem}`, { cause });
}

/** An error that names what of a plugin failed while it ran, such as a step or a port. */
export function failedFeature(name: string, part: string, cause: unknown): KeysError {
  const reason = printable(cause instanceof Error ? cause.message : String(cause), 300);
  return new KeysError('FEATURE_FAILED', `The ${part} of ${printable(name)} failed: ${reason}`, { cause });
}

/** An error of a plugin whose feature cannot be read, because a getter throws. */
export function unreadable(plugin: string, cause: unknown): KeysError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return invalidFeature(plugin, `It cannot be read: ${printable(reason, 300)}`, cause);
}
