/** Promises that are rejected and that nobody awaits, by the tests during or after which they were. */
const leaked = new Map<Promise<unknown>, { test: string; reason: unknown }>();
/** Deprecated uses of Node and of packages, by the tests during which they were. Node warns once of each. */
const deprecated: string[] = [];
let test = 'before the first test';
let isOthers = (_reason: unknown) => false;

function note(reason: unknown, promise: Promise<unknown>): void {
  if (!isOthers(reason)) leaked.set(promise, { test, reason });
}

function noteWarning({ name, stack }: Error): void {
  if (name === 'DeprecationWarning') deprecated.push(`A deprecated use during or after "${test}": ${stack}`);
}

/** Begins to look for them. Mocha passes over them, and forgets who listens after each file of a worker. */
export function watchForLeaks(): void {
  if (process.listeners('unhandledRejection').includes(note)) return;
  process.on('unhandledRejection', note);
  process.on('warning', noteWarning);
}

/** Passes over what another program leaks that a test compares with ours, until the end of its file. */
export function passOverLeaks(from: (reason: unknown) => boolean): void {
  isOthers = from;
}

/** Rejections from now on belong to this test. */
export function nameTest(name: string): void {
  test = name;
}

/** Fails if there were any since it was last called. @throws Error that names the tests, and shows what was found */
export async function failOnLeaks(): Promise<void> {
  // Node reports them once a turn of the event loop is done.
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
