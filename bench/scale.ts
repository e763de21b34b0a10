import { execFileSync } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { figure, median, table } from './figures.ts';
import type { ProbeOrder, ProbeReport } from './probe.ts';
import { cursorBeforeLast, makeStore, withFolder } from './stores.ts';

const SIZES = [1000, 100_000, 1_000_000];
const ROWS: readonly [title: string, field: keyof ProbeReport][] = [
  ['check of a known key, 32 in a turn, µs', 'check32'],
  ['check of a known key, alone in its turn, µs', 'check1'],
  ['first check of a key, µs', 'firstCheck'],
  ['list, first page of 50, µs', 'firstPage'],
  ['list, last page of 50, µs', 'lastPage'],
  ['list, search that finds nothing, µs', 'search'],
  ['create, µs', 'create'],
  ['delete, µs', 'delete'],
];

/** Measures the same calls on stores of three sizes, in turn, and makes a table of the medians. */
export function measureScale(rounds: number): Promise<string> {
  return withFolder(async (folder) => {
    const orders: string[] = [];
    for (const size of SIZES) {
      const database = join(folder, `${size}.sqlite`);
      const keys = await makeStore(database, size, 500);
      const order: ProbeOrder = { database, keys, lastPage: cursorBeforeLast(database, 50) };
      orders.push(join(folder, `${size}.json`));
      writeFileSync(orders.at(-1)!, JSON.stringify(order));
      process.stderr.write(`a store of ${figure(size)} keys is made\n`);
    }
    const reports: ProbeReport[][] = orders.map(() => []);
    for (let round = 0; round < rounds; round += 1) {
      for (const [index, order] of orders.entries()) reports[index]!.push(probe(order));
      process.stderr.write(`round ${round + 1} of ${rounds} is done\n`);
    }
    const medians = (field: keyof ProbeReport) => reports.map((all) => median(all.map((report) => report[field])));
    return table(
      ['', ...SIZES.map((size) => `${figure(size)} keys`), 'largest to smallest'],
      [
        ...ROWS.map(([title, field]) => {
          const values = medians(field);
          return [title, ...values.map((value) => figure(value, value < 100 ? 1 : 0)), figure(values.at(-1)! / values[0]!, 2)];
        }),
        ['memory of the process, MB', ...medians('memory').map((bytes) => figure(bytes / 2 ** 20)), ''],
        ['file, MB', ...SIZES.map((size) => figure(statSync(join(folder, `${size}.sqlite`)).size / 2 ** 20, 1)), ''],
      ],
    );
  });
}

function probe(order: string): ProbeReport {
  const file = fileURLToPath(new URL('probe.ts', import.meta.url));
  return JSON.parse(execFileSync(process.execPath, ['--expose-gc', file, order], { encoding: 'utf8' })) as ProbeReport;
}
