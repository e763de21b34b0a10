import { figure, table } from './figures.ts';
import { startServer, type StartedServer } from './processes.ts';
import { ON_POSTGRES, type Row, SVC_API } from './rows.ts';
import type { BenchKey } from './stores.ts';
import { inRounds, measure, type Measurement, medianOf, Rotation, type Rounds } from './throughput.ts';
import { ME } from './workloads.ts';

const LIVE_KEYS = [1000, 20_000, 100_000];

/** The largest measured number of live keys. */
export const MAX_LIVE_KEYS = Math.max(...LIVE_KEYS);

/** A server, and the number of its live keys. */
interface Line {
  row: Row;
  live: number;
  server: StartedServer;
  rotation: Rotation;
  all: Measurement[];
}

/**
 * Measures `me` with increasing numbers of keys in rotation, each of which has been used before.
 * @returns a table of the medians
 */
export async function measureLiveKeys(keys: readonly BenchKey[], folder: string, rounds: Rounds): Promise<string> {
  const lines: Line[] = [];
  try {
    for (const row of [SVC_API, ON_POSTGRES])
      for (const live of LIVE_KEYS) {
        const rotation = new Rotation(keys.slice(0, live));
        const line = { row, live, server: await startServer(row, folder), rotation, all: [] };
        lines.push(line);
        await sendAll(line);
      }
    await inRounds(rounds.rounds, async () => {
      for (const { server, rotation, all } of lines) all.push(await measure(server, ME, rotation, rounds));
    });
    return tableOf(lines);
  } finally {
    for (const { server } of lines) await server.stop();
  }
}

/** Sends each key at least once. */
async function sendAll({ server, live, rotation }: Line): Promise<void> {
  for (let sent = 0; sent < live;) sent += (await measure(server, ME, rotation, { warmUp: 0, seconds: 2 })).answers;
}

function tableOf(lines: readonly Line[]): string {
  return table(
    ['`me`', 'live keys', 'requests/s', 'CPU µs', 'of that with 1,000', 'p99 ms', 'memory MB'],
    lines.map(({ row, live, server, all }) => {
      const { rate, cpu, p99 } = medianOf(all);
      const fewest = medianOf(lines.find((line) => line.row === row)!.all);
      return [
        row.title,
        figure(live),
        figure(rate),
        figure(cpu, 1),
        figure(fewest.cpu / cpu, 2),
        figure(p99, 1),
        figure(server.memory() / 2 ** 20),
      ];
    }),
  );
}
