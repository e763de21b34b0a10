import { debug, millisecondsSince } from '../../keys/basics/index.ts';

/**
 * Collects what the start of a server has left: V8 does so only where more memory is asked for, which a server at rest
 * does not, and keeps the pages. Nothing is opened, and nobody can connect. Without an inspector, as where Node's
 * permissions refuse it, the memory is kept until then.
 */
export async function collectGarbage(): Promise<void> {
  const began = performance.now();
  try {
    // An `import()` would load all that Node's module has.
    const { Session } = process.getBuiltinModule('node:inspector');
    const session = new Session();
    session.connect();
    await new Promise<void>((resolve) => session.post('HeapProfiler.collectGarbage', () => resolve()));
    session.disconnect();
    debug('what the start had left was collected', () => ({ durationMs: millisecondsSince(began) }));
  } catch (error) {
    debug('what the start had left is kept', () => ({ err: error }));
  }
}
