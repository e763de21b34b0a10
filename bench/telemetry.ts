import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { checkAnswers } from './check-answers.ts';
import { figure, median, table } from './figures.ts';
import { LOAD_CORE, onCore, startServer, type StartedServer } from './processes.ts';
import { type Row, TELEMETRY_ROWS } from './rows.ts';
import type { BenchKey } from './stores.ts';
import { inRounds, measure, type Measurement, type Rounds, Rotation } from './throughput.ts';

/** How many servers run for each row: identical ones differ by some percent, since V8 compiles them differently. */
const INSTANCES = 3;

interface Instance {
  row: Row;
  server: StartedServer;
  all: Measurement[];
}

/**
 * Alternately measures `serve` with and without each kind of telemetry. Programs on the load generator's core read the
 * log from a pipe, and receive spans.
 * @returns a table of the means over several servers, of which each contributes its median
 */
export async function measureTelemetry(keys: readonly BenchKey[], folder: string, rounds: Rounds): Promise<string> {
  const instances: Instance[] = [];
  const log = startLogReader(folder);
  const receiver = await startReceiver();
  const [workload] = TELEMETRY_ROWS[0]!.workloads;
  const rotation = new Rotation(keys);
  try {
    for (const row of Array.from({ length: INSTANCES }, () => TELEMETRY_ROWS).flat()) {
      const server = await startServer(row, folder, {
        stderr: log.input,
        env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url },
      });
      instances.push({ row, server, all: [] });
      await checkAnswers(row, server, workload!, keys);
    }
    // Lets V8 compile first.
    for (const { server } of instances) await measure(server, workload!, rotation, { warmUp: 0, seconds: 2 });
    await inRounds(rounds.rounds, async () => {
      for (const { server, all } of instances) all.push(await measure(server, workload!, rotation, rounds));
    });
    return tableOf(instances);
  } finally {
    for (const { server } of instances) await server.stop();
    log.stop();
    receiver.stop();
  }
}

function tableOf(instances: readonly Instance[]): string {
  const resultsOf = (row: Row) => instances.filter((instance) => instance.row === row);
  const cpusOf = (row: Row) => resultsOf(row).map(({ all }) => median(all.map(({ cpu }) => cpu)));
  const base = mean(cpusOf(TELEMETRY_ROWS[0]!));
  return table(
    ['`me`', 'CPU µs', 'ratio', 'least', 'most', 'requests/s', 'p99 ms', 'memory MB'],
    TELEMETRY_ROWS.map((row) => {
      const [cpus, all] = [cpusOf(row), resultsOf(row).flatMap((instance) => instance.all)];
      return [
        row.title,
        figure(mean(cpus), 1),
        ...[mean(cpus), Math.min(...cpus), Math.max(...cpus)].map((cpu) => figure(cpu / base, 3)),
        figure(median(all.map(({ rate }) => rate))),
        figure(median(all.map(({ p99 }) => p99)), 1),
        figure(mean(resultsOf(row).map(({ server }) => server.memory())) / 2 ** 20),
      ];
    }),
  );
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** A pipe like a shell's, with a program that reads it. */
function startLogReader(folder: string): { input: number; stop: () => void } {
  const path = join(folder, 'log');
  execFileSync('mkfifo', [path]);
  const [command, ...args] = onCore(LOAD_CORE, 'sh', '-c', 'exec cat "$0" > /dev/null', path);
  const reader = spawn(command!, args, { stdio: 'ignore' });
  const input = openSync(path, 'w');
  return {
    input,
    stop: () => {
      closeSync(input);
      reader.kill();
    },
  };
}

/** Receives spans and drops them. */
async function startReceiver(): Promise<{ url: string; stop: () => void }> {
  const server = createServer((incoming, outgoing) => {
    incoming.resume().once('end', () => outgoing.writeHead(200, { 'content-type': 'application/x-protobuf' }).end());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
