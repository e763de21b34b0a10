import { readFileSync } from 'node:fs';
import { figure, median, table } from './figures.ts';
import { startChanges, startServer } from './processes.ts';
import { ON_POSTGRES, type Row, SVC_API } from './rows.ts';
import { type BenchKey, postgresPath, storePath } from './stores.ts';
import { inRounds, measure, type Measurement, medianOf, Rotation, type Rounds } from './throughput.ts';
import { ME } from './workloads.ts';

const CHANGES_PER_SECOND = [0, 1, 10, 50];
const LIVE_KEYS = 1000;
/** A multiple of the usual duration, so that each measurement includes a change even at one a second. */
const TIMES_AS_LONG = 3;

/** A row of the table. */
interface Line {
  row: Row;
  perSecond: number;
  all: Measurement[];
  /** The changes per second that were made. */
  made: number[];
}

/** Measures `me` while another process changes some of the keys in use. @returns a table of the medians */
export async function measureChurn(keys: readonly BenchKey[], folder: string, rounds: Rounds): Promise<string> {
  const live = keys.slice(0, LIVE_KEYS);
  const rotation = new Rotation(live);
  const times = { warmUp: rounds.warmUp, seconds: TIMES_AS_LONG * rounds.seconds };
  const ids = live.map(({ id }) => id);
  const servers = [
    { row: SVC_API, database: storePath(folder), server: await startServer(SVC_API, folder) },
    {
      row: ON_POSTGRES,
      database: readFileSync(postgresPath(folder), 'utf8'),
      server: await startServer(ON_POSTGRES, folder),
    },
  ];
  const lines = servers.flatMap(({ row }) =>
    CHANGES_PER_SECOND.map((perSecond): Line => ({ row, perSecond, all: [], made: [] })),
  );
  try {
    await inRounds(rounds.rounds, async () => {
      for (const { row, perSecond, all, made } of lines) {
        const { database, server } = servers.find((one) => one.row === row)!;
        const stop = perSecond > 0 ? await startChanges({ database, ids, perSecond }) : undefined;
        all.push(await measure(server, ME, rotation, times));
        made.push((await stop?.()) ?? 0);
      }
    });
  } finally {
    for (const { server } of servers) await server.stop();
  }
  return tableOf(lines);
}

function tableOf(lines: readonly Line[]): string {
  return table(
    [
      '`me`, 1,000 live keys',
      'changes/s asked for',
      'made',
      'requests/s',
      'CPU µs',
      'of that without changes',
      'p99 ms',
    ],
    lines.map(({ row, perSecond, all, made }) => {
      const { rate, cpu, p99 } = medianOf(all);
      const still = medianOf(lines.find((line) => line.row === row && line.perSecond === 0)!.all);
      return [
        row.title,
        figure(perSecond),
        figure(median(made), 1),
        figure(rate),
        figure(cpu, 1),
        figure(still.cpu / cpu, 2),
        figure(p99, 1),
      ];
    }),
  );
}
