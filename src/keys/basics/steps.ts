import { channel } from 'node:diagnostics_channel';

/** What the log has of a step at level debug, or of a statement at level trace. It never holds a secret or a digest. */
export interface Step {
  readonly message: string;
  readonly fields: object;
}

/**
 * Where the program publishes what it does, for a log at level debug or trace. Channels belong to the process: no part
 * of the program has to be handed a log for this, and where nobody subscribes, it costs one comparison.
 */
export const STEPS = { debug: channel('svc-api:debug'), trace: channel('svc-api:trace') } as const;

/** Whether steps are logged. */
export const isDebugged = (): boolean => STEPS.debug.hasSubscribers;

/** Whether statements are logged. */
export const isTraced = (): boolean => STEPS.trace.hasSubscribers;

/** Logs a step at level debug. @param fields is called only where it is logged */
export function debug(message: string, fields: () => object): void {
  if (STEPS.debug.hasSubscribers) STEPS.debug.publish({ message, fields: fields() } satisfies Step);
}

/** Logs a statement at level trace, without its values. */
export function trace(sql: string, fields: object): void {
  if (STEPS.trace.hasSubscribers) STEPS.trace.publish({ message: 'statement', fields: { sql, ...fields } });
}

/** Logs a step when it has ended, with how long it took, and its error if it failed. @throws what `work` throws */
export async function debugTimed<Result>(
  message: string,
  work: () => Promise<Result>,
  fields: (result: Result | undefined) => object,
): Promise<Result> {
  if (!isDebugged()) return work();
  const began = performance.now();
  let outcome: { result?: Result; failed?: unknown } = {};
  try {
    outcome.result = await work();
    return outcome.result;
  } catch (error) {
    const { code, name } = error as { code?: unknown; name?: unknown };
    outcome = { failed: code ?? name };
    throw error;
  } finally {
    const { result, ...failed } = outcome;
    debug(message, () => ({ ...fields(result), ...failed, durationMs: millisecondsSince(began) }));
  }
}

/** How long ago something began, in milliseconds with three digits behind the point. */
export function millisecondsSince(began: number): number {
  return Math.round((performance.now() - began) * 1000) / 1000;
}
