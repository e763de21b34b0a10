import { figure } from './figures.ts';
import { NAIVE, type Row, SVC_API } from './rows.ts';
import { measureStartUp, OWN } from './start-up.ts';
import { makeStores, withFolder } from './stores.ts';
import { measureThroughput } from './throughput.ts';

/** `npm run bench:short`: the two ratios that a change must not spoil, in one run on one machine. */
const LEAST_THROUGHPUT = 3;
const MOST_START_UP = 7;

function tell(what: string, ratio: number, isFine: boolean): void {
  process.stdout.write(`${isFine ? 'ok' : 'TOO SLOW'}: ${what}: ${figure(ratio, 2)}\n`);
  if (!isFine) process.exitCode = 1;
}

await withFolder(async (folder) => {
  const rows = [SVC_API, NAIVE].map((row): Row => ({ ...row, workloads: ['me'] }));
  const results = await measureThroughput(rows, await makeStores(folder, 100_000), folder, {
    rounds: 4,
    seconds: 1,
    warmUp: 1,
  });
  const [own, naive] = results.map(({ medians }) => medians.get('me')!);
  // Of the CPU time where that is known: what else runs on the machine would fall on one of the two.
  const ratio = Number.isNaN(own!.cpu) ? own!.rate / naive!.rate : naive!.cpu / own!.cpu;
  const rates = `${figure(own!.rate)} to ${figure(naive!.rate)} requests/s`;
  tell(
    `throughput of svc-api to the naive row (${rates}), at least ${LEAST_THROUGHPUT}`,
    ratio,
    ratio >= LEAST_THROUGHPUT,
  );
});
for (const { title, least, leastRatio } of (await measureStartUp(OWN, 11)).slice(1)) {
  tell(
    `start of ${title} to \`node -e 0\` (${figure(least)} ms), at most ${MOST_START_UP}`,
    leastRatio,
    leastRatio <= MOST_START_UP,
  );
}
