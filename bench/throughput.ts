import { median } from './figures.ts';
import type { LoadReport } from './load.ts';
import { load, startServer, type StartedServer } from './processes.ts';
import { checkAnswers } from './check-answers.ts';
import { requestOf } from './requests.ts';
import type { Row } from './rows.ts';
import type { BenchKey } from './stores.ts';
import type { Workload } from './workloads.ts';

const CONNECTIONS = 32;

export interface Rounds {
  rounds: number;
  /** The duration of each measurement and of its warm-up, in seconds. */
  seconds: number;
  warmUp: number;
}

/** The result of one measurement. */
export interface Measurement extends LoadReport {
  /** The server's CPU time per request in microseconds, which other load on the machine hardly affects. */
  cpu: number;
}

export interface Throughput {
  row: Row;
  /** The medians over all rounds. */
  medians: Map<Workload, Measurement>;
  /** Resident memory at the end, in bytes. */
  memory: number;
}

/**
 * Starts all servers, checks their responses, and measures them in turn, so that other load on the machine affects all.
 * @throws AssertionError when a response is wrong
 */
export async function measureThroughput(
  rows: readonly Row[],
  keys: readonly BenchKey[],
  folder: string,
  rounds: Rounds,
): Promise<Throughput[]> {
  const servers: StartedServer[] = [];
  const reports = new Map<Row, Map<Workload, Measurement[]>>(
    rows.map((row) => [row, new Map(row.workloads.map((workload) => [workload, []]))]),
  );
  try {
    for (const row of rows) {
      const server = await startServer(row, folder);
      servers.push(server);
      for (const workload of row.workloads) await checkAnswers(row, server, workload, keys);
    }
    await inRounds(rounds.rounds, async () => {
      for (const [index, row] of rows.entries())
        for (const [workload, all] of reports.get(row)!)
          all.push(await measure(servers[index]!, workload, new Rotation(keys), rounds));
    });
    return rows.map((row, index) => ({
      row,
      medians: new Map(Array.from(reports.get(row)!, ([workload, all]) => [workload, medianOf(all)])),
      memory: servers[index]!.memory(),
    }));
  } finally {
    for (const server of servers) await server.stop();
  }
}

/** The keys for requests, in turn, continued from one measurement to the next. */
export class Rotation {
  readonly tokens: readonly string[];
  from = 0;

  constructor(keys: readonly BenchKey[]) {
    this.tokens = keys.map(({ secret }) => secret);
  }
}

export async function inRounds(rounds: number, work: () => Promise<void>): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    await work();
    process.stderr.write(`round ${round + 1} of ${rounds} is done\n`);
  }
}

/** @throws Error for an unexpected status */
export async function measure(
  { port, cpu }: StartedServer,
  workload: Workload,
  rotation: Rotation,
  { seconds, warmUp }: Pick<Rounds, 'seconds' | 'warmUp'>,
): Promise<Measurement> {
  const before = cpu();
  const { tokens, from } = rotation;
  const request = requestOf(workload, port);
  const { statuses = [200] } = workload;
  const report = await load({ port, connections: CONNECTIONS, request, tokens, from, statuses, warmUp, seconds });
  if (report.wrong > 0) throw new Error(`${report.wrong} requests for ${workload.title} were answered wrongly.`);
  rotation.from = (from + report.answers) % tokens.length;
  return { ...report, cpu: ((cpu() - before) * 1e6) / report.answers };
}

export function medianOf(all: readonly Measurement[]): Measurement {
  const fields = Object.keys(all[0]!) as (keyof Measurement)[];
  return Object.fromEntries(
    fields.map((field) => [field, median(all.map((one) => one[field]))]),
  ) as unknown as Measurement;
}
