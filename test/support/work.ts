import { Session } from 'node:inspector/promises';

/** The amount of work on this thread, and its result. */
export interface Work<Result> {
  /** Function calls, in thousands. */
  count: number;
  result: Awaited<Result>;
}

/** Counts work. Starting and stopping the counter takes longer than counting. */
export interface WorkCounter {
  of<Result>(work: () => Result): Promise<Work<Result>>;
  stop(): Promise<void>;
}

/**
 * Counts work on this thread as function calls, which do not depend on the speed of the machine. Loops without calls,
 * and work inside V8 such as regular expressions, are not counted.
 */
export async function workOf<Result>(work: () => Result): Promise<Work<Result>> {
  const counter = await startCounting();
  try {
    return await counter.of(work);
  } finally {
    await counter.stop();
  }
}

/** Starts a counter that can be used several times. */
export async function startCounting(): Promise<WorkCounter> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  /** The calls since the last query. */
  const calls = async () => {
    const { result: scripts } = await session.post('Profiler.takePreciseCoverage');
    const ranges = scripts.flatMap(({ functions }) => functions).flatMap(({ ranges: found }) => found);
    return ranges.reduce((sum, { count }) => sum + count, 0);
  };
  return {
    async of(work) {
      await calls();
      const result = await work();
      return { count: (await calls()) / 1000, result };
    },
    async stop() {
      await session.post('Profiler.stopPreciseCoverage');
      session.disconnect();
    },
  };
}
