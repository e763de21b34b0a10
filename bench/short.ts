import { figure } from './figures.ts';
import { measureRoutes } from './routes.ts';
import { NAIVE, type Row, SVC_API } from './rows.ts';
import { measureStartUp, OWN } from './start-up.ts';
import { withStores } from './stores.ts';
import { measureThroughput } from './throughput.ts';
import { INCLUDE, LIST } from './workloads.ts';

/** `npm run bench:short`: the ratios that must not regress, measured in one run on one machine. */
const GUARDED = [LIST, INCLUDE];
const MIN_THROUGHPUT_RATIO = 3;
/** The ratio is 5 to 7, depending on the machine. A regression would be much larger. */
const MAX_START_UP_RATIO = 8;
/**
 * Creating a store also writes 67 tables, indexes and views, which takes 0.9 to 1.6 times `node -e 0`, depending on the
 * file system.
 */
const MAX_NEW_STORE_RATIO = 10;
/**
 * The work for a decision does not grow, but ten thousand hosts exceed the processor's cache, which alone costs up to a
 * factor of two.
 */
const MAX_ROUTES_RATIO = 3;

function report(what: string, ratio: number, isFine: boolean): void {
  process.stdout.write(`${isFine ? 'ok' : 'TOO SLOW'}: ${what}: ${figure(ratio, 2)}\n`);
  if (!isFine) process.exitCode = 1;
}

await withStores({ size: 100_000, live: 1000 }, async (keys, folder) => {
  const rows = [SVC_API, NAIVE].map((row): Row => ({ ...row, workloads: GUARDED }));
  const results = await measureThroughput(rows, keys, folder, { rounds: 4, seconds: 0.7, warmUp: 0.3 });
  for (const workload of GUARDED) {
    const [own, naive] = results.map(({ medians }) => medians.get(workload));
    // Prefers the ratio of CPU times, which other load on the machine affects less than rates.
    const ratio = Number.isNaN(own!.cpu) ? own!.rate / naive!.rate : naive!.cpu / own!.cpu;
    const rates = `${figure(own!.rate)} to ${figure(naive!.rate)} requests/s`;
    report(
      `${workload.title}: svc-api to the naive row (${rates}), at least ${MIN_THROUGHPUT_RATIO}`,
      ratio,
      ratio >= MIN_THROUGHPUT_RATIO,
    );
  }
});
for (const { title, leastRatio, cpuRatio } of (await measureStartUp(OWN, 11)).slice(1)) {
  const ratio = Number.isNaN(cpuRatio) ? leastRatio : cpuRatio;
  const bound = title.endsWith('new store') ? MAX_NEW_STORE_RATIO : MAX_START_UP_RATIO;
  report(`start of ${title} to \`node -e 0\`, at most ${bound}`, ratio, ratio <= bound);
}
const [few, , many] = measureRoutes(9);
const routesRatio = many!.time / few!.time;
report(
  `a decision by ${many!.count} routes to one by ${few!.count}, at most ${MAX_ROUTES_RATIO}`,
  routesRatio,
  routesRatio <= MAX_ROUTES_RATIO,
);
