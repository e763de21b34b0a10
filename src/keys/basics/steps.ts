import { channel } from 'node:diagnostics_channel';

/** The log's record of a step at level debug, or of a statement at level trace. It never holds a secret or a digest. */
export interface Step {
  readonly message: string;
  readonly fields: object;
}

/**
 * Channels of the program's steps, for a log at level debug or trace. Channels belong to the process, so no part has to
 * be given a log, and without a subscriber they cost one comparison.
 */
export const STEPS = { debug: channel('svc-api:debug'), trace: channel('svc-api:trace') } as const;

export const isDebugged = (): boolean => STEPS.debug.hasSubscribers;

export const isTraced = (): boolean => STEPS.trace.hasSubscribers;

/** Logs a step at level debug. @param fields is called only if the step is logged */
export function debug(message: string, fields: () => object): void {
  if (STEPS.debug.hasSubscribers) STEPS.debug.publish({ message, fields: fields() } satisfies Step);
}

/** Logs a statement at level trace, without its values. */
export function trace(sql: string, fields: object): void {
  if (STEPS.trace.hasSubscribers) STEPS.trace.publish({ message: 'statement', fields: { sql, ...fields } });
}

/** Logs a step when it has ended, with its duration, and its error if it failed. @throws the error of `work` */
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

/** Milliseconds since `began`, with three decimals. */
export function millisecondsSince(began: number): number {
  return Math.round((performance.now() - began) * 1000) / 1000;
}
