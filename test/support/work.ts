import { Session } from 'node:inspector/promises';

/** A count of what something is to this thread, and its result. */
export interface Work<Result> {
  /** Calls of functions, in thousands. */
  count: number;
  result: Awaited<Result>;
}

/** Counts work. Starting and stopping it takes longer than counting. */
export interface WorkCounter {
  of<Result>(work: () => Result): Promise<Work<Result>>;
  stop(): Promise<void>;
}

/**
 * Counts the work that something is to this thread: how many calls of functions it makes. A slow or busy machine makes
 * as many. A loop without calls, and what V8 does itself, such as a regular expression, count as nothing.
 */
export async function workOf<Result>(work: () => Result): Promise<Work<Result>> {
  const counter = await startCounting();
  try {
    return await counter.of(work);
  } finally {
    await counter.stop();
  }
}

/** Starts a counter for several times. */
export async function startCounting(): Promise<WorkCounter> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  /** The calls since it was last asked. */
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
