import { execFileSync } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { figure, median, table } from './figures.ts';
import { copyInto, withPostgres } from './postgres.ts';
import type { ProbeOptions, ProbeReport } from './probe.ts';
import { cursorBeforeLast, makeStore, withFolder } from './stores.ts';

const SIZES = [1000, 100_000, 1_000_000];
const ROWS: readonly [title: string, field: keyof ProbeReport][] = [
  ['check of a known key, 32 in a turn, µs', 'check32'],
  ['check of a known key, alone in its turn, µs', 'check1'],
  ['first check of a key, µs', 'firstCheck'],
  ['list, first page of 50, µs', 'firstPage'],
  ['list, last page of 50, µs', 'lastPage'],
  ['list, search that finds nothing, µs', 'search'],
  ['list, search that finds one key, µs', 'searchOne'],
  ['list, search that finds all keys, first page of 50, µs', 'searchAll'],
  ['count by status, µs', 'count'],
  ['count by status, longest turn, µs', 'countTurn'],
  ['first count by status, longest turn, µs', 'firstCountTurn'],
  ['create, µs', 'create'],
  ['delete, µs', 'delete'],
  ['apply 1,000 new keys, µs for each', 'apply'],
  ['apply them again, µs for each', 'applyAgain'],
  ['delete 1,000 keys at once, µs for each', 'deleteMany'],
];

/** A store to measure. */
interface Probed {
  title: string;
  size: number;
  /** The file with the probe's options. */
  options: string;
  file?: string;
  reports: ProbeReport[];
}

/**
 * Alternately measures the same calls on stores of three sizes, and on a PostgreSQL copy of the largest.
 * @returns a table of the medians
 */
export function measureScale(rounds: number): Promise<string> {
  return withFolder((folder) =>
    withPostgres(async (url) => {
      const files = await Promise.all(SIZES.map((size) => makeFile(folder, size)));
      const largest = files.at(-1)!;
      const { copy, seconds } = await copyLargest(folder, url, largest);
      process.stderr.write('the stores are ready\n');
      for (let round = 0; round < rounds; round += 1) {
        for (const probed of [...files, copy]) probed.reports.push(probe(probed.options));
        process.stderr.write(`round ${round + 1} of ${rounds} is done\n`);
      }
      const copied = `\`apikey export --to\` of the ${largest.title} into PostgreSQL took ${figure(seconds)} seconds.`;
      return `${tableOf(files, copy)}\n\n${copied}`;
    }),
  );
}

async function makeFile(folder: string, size: number): Promise<Probed & { file: string; keys: ProbeOptions['keys'] }> {
  const file = join(folder, `${size}.sqlite`);
  const keys = await makeStore(file, size, 500);
  const options = writeOptions(folder, String(size), { database: file, keys, lastPage: cursorBeforeLast(file, 50) });
  return { title: `${figure(size)} keys`, size, options, file, keys, reports: [] };
}

async function copyLargest(folder: string, server: string, { file, keys, size }: Awaited<ReturnType<typeof makeFile>>) {
  const { url, seconds } = await copyInto(server, 'scale', file);
  const options = writeOptions(folder, 'postgres', { database: url, keys, lastPage: cursorBeforeLast(file, 50) });
  const copy: Probed = { title: `${figure(size)} keys on PostgreSQL`, size, options, reports: [] };
  return { copy, seconds };
}

function writeOptions(folder: string, name: string, options: ProbeOptions): string {
  const path = join(folder, `${name}.json`);
  writeFileSync(path, JSON.stringify(options));
  return path;
}

function tableOf(files: readonly Probed[], copy: Probed): string {
  const medianOf = ({ reports }: Probed, field: keyof ProbeReport) => median(reports.map((report) => report[field]));
  const ratioOf = (field: keyof ProbeReport) => figure(medianOf(files.at(-1)!, field) / medianOf(files[0]!, field), 2);
  const sizeOf = ({ file }: Probed) => (file === undefined ? '' : figure(statSync(file).size / 2 ** 20, 1));
  const short = (value: number) => figure(value, value < 100 ? 1 : 0);
  return table(
    ['', ...files.map(({ title }) => title), 'largest to smallest', copy.title],
    [
      ...ROWS.map(([title, field]) => {
        const [own, other] = [files.map((probed) => short(medianOf(probed, field))), short(medianOf(copy, field))];
        return [title, ...own, ratioOf(field), other];
      }),
      [
        'memory of the process, MB',
        ...files.map((probed) => figure(medianOf(probed, 'memory') / 2 ** 20)),
        '',
        figure(medianOf(copy, 'memory') / 2 ** 20),
      ],
      ['file, MB', ...files.map(sizeOf), '', ''],
    ],
  );
}

function probe(options: string): ProbeReport {
  const file = fileURLToPath(new URL('probe.ts', import.meta.url));
  const report = execFileSync(process.execPath, ['--expose-gc', file, options], { encoding: 'utf8' });
  return JSON.parse(report) as ProbeReport;
}
