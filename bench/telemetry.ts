import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { checkAnswers } from './check-answers.ts';
import { figure, median, table } from './figures.ts';
import { LOAD_CORE, onCore, startServer, type StartedServer } from './processes.ts';
import { TELEMETRY_ROWS } from './rows.ts';
import type { BenchKey } from './stores.ts';
import { inRounds, measure, type Measurement, type Rounds, Rotation } from './throughput.ts';

/**
 * Measures what operators see of `serve`, each beside the same without it, in turn. The log is a pipe, which a program
 * on the core of the load reads; so does what takes spans.
 * @returns a table of the medians, and of those of the ratios of each round
 */
export async function measureTelemetry(keys: readonly BenchKey[], folder: string, rounds: Rounds): Promise<string> {
  const servers: StartedServer[] = [];
  const log = startLogReader(folder);
  const receiver = await startReceiver();
  const all: Measurement[][] = TELEMETRY_ROWS.map(() => []);
  const [{ workloads }] = TELEMETRY_ROWS as [(typeof TELEMETRY_ROWS)[number]];
  const [workload] = workloads;
  const rotation = new Rotation(keys);
  try {
    for (const row of TELEMETRY_ROWS) {
      const server = await startServer(row, folder, {
        stderr: log.input,
        env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url },
      });
      servers.push(server);
      await checkAnswers(row, server, workload!, keys);
    }
    // V8 has compiled by then.
    for (const server of servers) await measure(server, workload!, rotation, { warmUp: 0, seconds: 2 });
    await inRounds(rounds.rounds, async () => {
      for (const [index, server] of servers.entries())
        all[index]!.push(await measure(server, workload!, rotation, rounds));
    });
    return tableOf(all, servers);
  } finally {
    for (const server of servers) await server.stop();
    log.stop();
    receiver.stop();
  }
}

function tableOf(all: readonly Measurement[][], servers: readonly StartedServer[]): string {
  const base = all[0]!;
  return table(
    ['`me`', 'CPU µs', 'ratio', 'from', 'to', 'requests/s', 'p99 ms', 'memory MB'],
    TELEMETRY_ROWS.map(({ title }, index) => {
      const own = all[index]!;
      const ratios = own.map(({ cpu }, round) => cpu / base[round]!.cpu).toSorted((one, other) => one - other);
      const at = (fraction: number) => figure(ratios[Math.round((ratios.length - 1) * fraction)]!, 3);
      return [
        title,
        figure(median(own.map(({ cpu }) => cpu)), 1),
        figure(median(ratios), 3),
        at(0.25),
        at(0.75),
        figure(median(own.map(({ rate }) => rate))),
        figure(median(own.map(({ p99 }) => p99)), 1),
        figure(servers[index]!.memory() / 2 ** 20),
      ];
    }),
  );
}

/** A pipe as a shell makes it, and a program that reads it. */
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

/** What takes spans, and forgets them. */
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
