import { figure, table } from './figures.ts';
import { BARE, MERCURIUS, NAIVE, ON_POSTGRES, type Row, SVC_API } from './rows.ts';
import type { Measurement, Throughput } from './throughput.ts';
import type { Workload } from './workloads.ts';

/** For each shape of request, the CPU time of svc-api and the ratios of the others to it. */
export function shapesTable(results: readonly Throughput[], shapes: readonly Workload[]): string {
  const cpuOf = (row: Row, shape: Workload) => measured(results, row, shape).cpu;
  const others = [
    { row: NAIVE, name: 'naive' },
    { row: MERCURIUS, name: 'mercurius with jit' },
    { row: BARE, name: 'bare node:http' },
  ].filter(({ row }) => results.some((result) => result.row.title === row.title));
  return table(
    [
      'CPU µs a request',
      'svc-api',
      'on PostgreSQL',
      ...others.map(({ name }) => name),
      ...others.map(({ name }) => `to ${name}`),
      'load busy',
    ],
    shapes.map((shape) => [
      shape.title,
      ...[SVC_API, ON_POSTGRES, ...others.map(({ row }) => row)].map((row) => figure(cpuOf(row, shape), 1)),
      ...others.map(({ row }) => figure(cpuOf(row, shape) / cpuOf(SVC_API, shape), 2)),
      `${figure(measured(results, SVC_API, shape).busy * 100)} %`,
    ]),
  );
}

/** All rows, and their ratios to one of them. */
export function throughputTable(results: readonly Throughput[], workloads: readonly Workload[], base: Row): string {
  return table(
    [
      'row',
      ...workloads.flatMap(({ title }) => [`${title}, requests/s`, 'ratio', 'CPU µs', 'ratio', 'p99 ms', 'load busy']),
      'memory MB',
    ],
    results.map(({ row, medians, memory }) => [
      row.title,
      ...workloads.flatMap((workload) => {
        const { rate, cpu, p99, busy } = medians.get(workload)!;
        const { rate: baseRate, cpu: baseCpu } = measured(results, base, workload);
        return [
          figure(rate),
          figure(rate / baseRate, 2),
          figure(cpu, 1),
          figure(baseCpu / cpu, 2),
          figure(p99, 1),
          `${figure(busy * 100)} %`,
        ];
      }),
      figure(memory / 2 ** 20),
    ]),
  );
}

function measured(results: readonly Throughput[], wanted: Row, workload: Workload): Measurement {
  return results.find(({ row }) => row.title === wanted.title)!.medians.get(workload)!;
}
