import { randomUUID } from 'node:crypto';
import type { ActivityWriters } from '../../keys/authentication/index.ts';
import { isKeysError } from '../../keys/basics/index.ts';
import type { Log } from '../../log.ts';
import type { ActivityReport, FeedSource } from './feed-source.ts';

/** The origin accepts up to 1 MiB. */
const MAX_REPORT_BYTES = 900_000;

/**
 * Reports the use of keys to the origin. A report whose arrival is uncertain is sent again first and unchanged, so that
 * it is counted once; the caller adds up later uses.
 */
export function activityReports(source: FeedSource, log: Log): ActivityWriters {
  const waiting: ActivityReport[] = [];
  const send = async () => {
    for (let report = waiting[0]; report; report = waiting[0]) {
      try {
        await source.reportActivity(report);
      } catch (error) {
        const isRefused = isKeysError(error) && error.code === 'INPUT_INVALID';
        if (!isRefused) throw error;
        log.error({ err: error }, 'the origin refuses the report about the use of keys');
      }
      waiting.shift();
    }
  };
  const report = async (reports: readonly Omit<ActivityReport, 'id'>[]) => {
    await send();
    waiting.push(...reports.map((each) => ({ id: randomUUID(), ...each })));
    // Once taken, it is repeated with the next report until it arrives.
    await send().catch((error: unknown) => log.debug({ err: error }, 'the use of keys is reported later'));
  };
  return {
    writeUse: (usage) => report(inPieces(usage, (piece) => ({ usage: piece, activated: [], refusals: [] }))),
    writeEvents: ({ activated, refusals }) =>
      report([
        ...inPieces(activated, (piece) => ({ usage: [], activated: piece, refusals: [] })),
        ...inPieces(refusals, (piece) => ({ usage: [], activated: [], refusals: piece })),
      ]),
  };
}

/** Splits items into reports of limited size. */
function inPieces<Item>(items: readonly Item[], reportOf: (items: Item[]) => Omit<ActivityReport, 'id'>) {
  const reports: Omit<ActivityReport, 'id'>[] = [];
  for (let [start, bytes, end] = [0, 0, 0]; end < items.length;) {
    bytes += Buffer.byteLength(JSON.stringify(items[end]));
    end += 1;
    if (end < items.length && bytes < MAX_REPORT_BYTES / 2) continue;
    reports.push(reportOf(items.slice(start, end)));
    [start, bytes] = [end, 0];
  }
  return reports;
}
