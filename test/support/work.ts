import { Session } from 'node:inspector/promises';

/**
 * Counts the work that something is to this thread: how many calls of functions it makes, in thousands. A slow or busy
 * machine makes as many. A loop without calls, and what V8 does itself, such as a regular expression, count as nothing.
 */
export async function workOf<Result>(work: () => Result): Promise<{ count: number; result: Awaited<Result> }> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    const result = await work();
    const { result: scripts } = await session.post('Profiler.takePreciseCoverage');
    await session.post('Profiler.stopPreciseCoverage');
    const ranges = scripts.flatMap(({ functions }) => functions).flatMap(({ ranges: found }) => found);
    return { count: ranges.reduce((sum, { count }) => sum + count, 0) / 1000, result };
  } finally {
    session.disconnect();
  }
}
