import { inTime, isKeysError, printable } from '../basics/index.ts';
import { invalidFeature } from './failures.ts';
import { isAdded } from './registry.ts';

/**
 * How long a plugin can take to load a part of it, to start its work, or for a step, in milliseconds. Others wait
 * meanwhile.
 */
export const WORK_MS = 10_000;

/**
 * Does work of a feature. That of a plugin has a time limit.
 * @throws KeysError FEATURE_INVALID in place of another error, if it is one of a plugin
 */
export async function workOf<Result>(
  feature: { readonly name: string },
  member: string,
  work: () => Result | Promise<Result>,
): Promise<Result> {
  if (!isAdded(feature)) return work();
  return inNameOf(feature.name, `Its "${member}" failed`, () => inTime(work(), WORK_MS));
}

/** Does work in the name of a feature. @throws KeysError FEATURE_INVALID in place of an error without a code */
export async function inNameOf<Result>(
  feature: string,
  failed: string,
  work: () => Result | Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (isKeysError(error)) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw invalidFeature(feature, `${failed}: ${printable(reason, 300)}`, error);
  }
}
