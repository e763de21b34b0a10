/** Unhandled rejections, by the test that was running or had just ended. */
const leaked = new Map<Promise<unknown>, { test: string; reason: unknown }>();
/** Deprecation warnings, by the test that was running. Node emits each only once. */
const deprecated: string[] = [];
let test = 'before the first test';
let isOthers = (_reason: unknown) => false;

function note(reason: unknown, promise: Promise<unknown>): void {
  if (!isOthers(reason)) leaked.set(promise, { test, reason });
}

function noteWarning({ name, stack }: Error): void {
  if (name === 'DeprecationWarning') deprecated.push(`A deprecated use during or after "${test}": ${stack}`);
}

/** Starts to record them. Mocha ignores them, and removes listeners after each file of a worker. */
export function watchForLeaks(): void {
  if (process.listeners('unhandledRejection').includes(note)) return;
  process.on('unhandledRejection', note);
  process.on('warning', noteWarning);
}

/** Ignores rejections of another program that a test compares with ours, until the end of the file. */
export function passOverLeaks(from: (reason: unknown) => boolean): void {
  isOthers = from;
}

/** Attributes rejections to this test from now on. */
export function nameTest(name: string): void {
  test = name;
}

/** Fails if there were any since the last call. @throws Error that names the tests and the reasons */
export async function failOnLeaks(): Promise<void> {
  // Node reports rejections at the end of a turn of the event loop.
  await new Promise<void>((resolve) => void setImmediate(resolve));
  const found = [...leaked.values()];
  leaked.clear();
  isOthers = () => false;
  const warnings = deprecated.splice(0);
  if (found.length + warnings.length === 0) return;
  const lines = found.map(({ test, reason }) => {
    const text = reason instanceof Error ? reason.stack : String(reason);
    return `A rejection that nobody awaited, during or after "${test}": ${text}`;
  });
  throw new AggregateError(
    found.map(({ reason }) => reason),
    [...lines, ...warnings].join('\n'),
  );
}
