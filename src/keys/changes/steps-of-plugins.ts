import { failedFeature, isAdded, WORK_MS } from '../added/index.ts';
import { inTime, isKeysError, kindOf } from '../basics/index.ts';
import type { KeyListener, OwnKeyListener, ReplacementSteps } from './transaction.ts';

/** The listeners of features, in their order. A feature that does not listen costs nothing. */
export function listenersOf(
  features: readonly { readonly name: string; readonly onKeys?: OwnKeyListener }[],
): OwnKeyListener[] {
  return features.flatMap((feature) => {
    const { name, onKeys } = feature;
    if (!onKeys) return [];
    return isAdded(feature) ? stepsOfPlugin(name, onKeys) : onKeys;
  });
}

type Step = (...given: unknown[]) => unknown;

/** A plugin's steps, whose failures name the plugin. One that takes too long fails. */
export function stepsOfPlugin(plugin: string, { rules, ...onKeys }: KeyListener, limitMs = WORK_MS): KeyListener {
  const named = (steps: object, path: string): object =>
    Object.fromEntries(
      Object.entries(steps).map(([name, step]) => [name, namedStep(plugin, `${path}.${name}`, step as Step, limitMs)]),
    );
  return { ...named(onKeys, 'onKeys'), ...(rules && { rules: named(rules, 'onKeys.rules') as typeof rules }) };
}

/** A step that throws `FEATURE_FAILED`, which names it, in place of an error that is not for people. */
function namedStep(plugin: string, path: string, step: Step, limitMs: number): Step {
  return async (...given) => {
    try {
      const result = await inTime(step(...given), limitMs);
      return readResult(path, result, (name, later) => namedStep(plugin, name, later, limitMs));
    } catch (error) {
      if (isKeysError(error)) throw error;
      throw failedFeature(plugin, `step ${path}`, error);
    }
  };
}

/** A step's result. Failures of steps in it name the plugin, too. @throws Error for an invalid result */
function readResult(path: string, result: unknown, named: (path: string, step: Step) => Step): unknown {
  if (result == null) return undefined;
  const wrong = (wanted: string) => new Error(`It returned ${kindOf(result)}. It must return ${wanted}, or undefined.`);
  if (path === 'onKeys.refuses' && !isKeysError(result))
    throw wrong('a KeysError or an error with a code of the plugin');
  if (path === 'onKeys.issued' && !Array.isArray(result)) throw wrong('a list');
  if (path === 'onKeys.restoring') {
    if (typeof result !== 'function') throw wrong('a function');
    return named(path, result as Step);
  }
  if (path === 'onKeys.replacing') {
    const { replaced, reverted } = result as Partial<Record<keyof ReplacementSteps, Step>>;
    if (typeof replaced !== 'function' || typeof reverted !== 'function')
      throw wrong('an object with the functions "replaced" and "reverted"');
    return { replaced: named(`${path}.replaced`, replaced), reverted: named(`${path}.reverted`, reverted) };
  }
  return result;
}
