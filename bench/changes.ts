import { OPERATOR, openKeys } from './svc-api.ts';
import { RESOURCES } from './stores.ts';

/** The changes to measure, as JSON in the only argument. */
export interface ChangesOptions {
  database: string;
  /** The ids of the keys to change, in turn. */
  ids: readonly string[];
  perSecond: number;
}

/**
 * Changes the description of one key after another until stdin ends. Prints a line at the start, and the changes per
 * second at the end.
 */
const { database, ids, perSecond } = JSON.parse(process.argv[2]!) as ChangesOptions;
const keys = await openKeys({ database, resources: RESOURCES, ifMissing: 'fail' });
process.stdin.resume();

process.stdout.write('ready\n');
const start = performance.now();
let changed = 0;
while (!process.stdin.readableEnded) {
  const due = Math.floor(((performance.now() - start) / 1000) * perSecond);
  if (changed >= due) await new Promise((resolve) => setTimeout(resolve, 5));
  else {
    await keys.update(ids[changed % ids.length]!, { description: `Change ${changed} of ${process.pid}` }, OPERATOR);
    changed += 1;
  }
}
process.stdout.write(`${(changed * 1000) / (performance.now() - start)}\n`);
await keys.close();
