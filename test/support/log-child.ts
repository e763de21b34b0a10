import { once } from 'node:events';
import { openLog } from '../../src/log.ts';

/**
 * Logs this many lines, reports that on stdout, and ends with stdin after all lines are written, or at once if
 * requested.
 */
const [, , count, end] = process.argv;
const log = await openLog('info');
for (let number = 0; number < Number(count); number += 1) {
  log.info({ number }, 'a line of the log');
}
if (end === 'exit') process.exit();
if (end === 'throw') throw new Error('on purpose');
process.stdout.write('logged\n');
process.stdin.resume();
await once(process.stdin, 'end');
log.info({}, 'the last line');
process.exit((await log.drained(60_000)) ? 0 : 1);
