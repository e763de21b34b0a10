import assert from 'node:assert/strict';
import { median } from './figures.ts';
import type { LoadReport } from './load.ts';
import { load, startServer, type StartedServer } from './processes.ts';
import type { Row } from './rows.ts';
import type { BenchKey } from './stores.ts';
import { bodyOf, expectedOf, pathOf, type Workload } from './workloads.ts';

export interface Rounds {
  rounds: number;
  /** How long each measurement and its warm-up take, in seconds. */
  seconds: number;
  warmUp: number;
}

/** The result of one measurement. */
export interface Measurement extends LoadReport {
  /** The server's CPU time per request, in microseconds; hardly affected by other load on the machine. */
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
  { rounds, seconds, warmUp }: Rounds,
): Promise<Throughput[]> {
  const servers: StartedServer[] = [];
  const reports = new Map<Row, Map<Workload, Measurement[]>>(rows.map((row) => [row, new Map()]));
  try {
    for (const row of rows) {
      const server = await startServer(row, folder);
      servers.push(server);
      for (const workload of row.workloads) await checkAnswers(row, server, workload, keys);
    }
    for (let round = 0; round < rounds; round += 1) {
      for (const [index, row] of rows.entries()) {
        const server = servers[index]!;
        for (const workload of row.workloads) {
          const report = await measure(server, workload, keys, { seconds, warmUp });
          assert.equal(report.wrong, 0, `${row.title} answered ${report.wrong} requests wrongly`);
          reports.get(row)!.set(workload, [...(reports.get(row)!.get(workload) ?? []), report]);
        }
      }
      process.stderr.write(`round ${round + 1} of ${rounds} is done\n`);
    }
    return rows.map((row, index) => ({
      row,
      medians: new Map(Array.from(reports.get(row)!, ([workload, all]) => [workload, medianOf(all)])),
      memory: servers[index]!.memory(),
    }));
  } finally {
    for (const server of servers) await server.stop();
  }
}

async function measure(
  { port, cpu }: StartedServer,
  workload: Workload,
  keys: readonly BenchKey[],
  times: Pick<Rounds, 'seconds' | 'warmUp'>,
): Promise<Measurement> {
  const before = cpu();
  const report = await load({ port, requests: keys.map(({ secret }) => requestOf(workload, port, secret)), ...times });
  return { ...report, cpu: ((cpu() - before) * 1e6) / report.answers };
}

/** Checks that the responses are right, also the second time, and that a wrong key is refused. */
async function checkAnswers(
  { title, isOpen }: Row,
  { port }: StartedServer,
  workload: Workload,
  keys: readonly BenchKey[],
): Promise<void> {
  for (const key of [...keys, ...keys]) {
    const response = await ask(workload, port, key.secret);
    const text = await response.text();
    assert.equal(response.status, 200, `${title} answers ${response.status}: ${text}`);
    assert.deepEqual(
      JSON.parse(text),
      expectedOf(workload, isOpen ? keys[0]! : key),
      `${title} answers something else`,
    );
  }
  if (isOpen) return;
  const wrongKey = keys[0]!.secret.replace(/.{8}$/, 'zzzzzzzz');
  assert.equal((await ask(workload, port, wrongKey)).status, 401, `${title} does not refuse a wrong key`);
}

function ask(workload: Workload, port: number, secret: string): Promise<Response> {
  const body = bodyOf(workload);
  return fetch(`http://127.0.0.1:${port}${pathOf(workload)}`, {
    ...(body !== undefined && { method: 'POST', body }),
    headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
  });
}

/** The request of a typical client. */
function requestOf(workload: Workload, port: number, secret: string): string {
  const body = bodyOf(workload);
  const head = [
    `${body === undefined ? 'GET' : 'POST'} ${pathOf(workload)} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    'User-Agent: svc-api-bench',
    'Accept: application/json',
    `Authorization: Bearer ${secret}`,
  ];
  if (body !== undefined) head.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`);
  return `${head.join('\r\n')}\r\n\r\n${body ?? ''}`;
}

function medianOf(all: readonly Measurement[]): Measurement {
  const fields = Object.keys(all[0]!) as (keyof Measurement)[];
  return Object.fromEntries(
    fields.map((field) => [field, median(all.map((one) => one[field]))]),
  ) as unknown as Measurement;
}
