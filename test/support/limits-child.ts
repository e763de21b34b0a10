// A program for tests of shared limits. It reports that it is ready and waits for the start signal. Then it makes
// requests with a key, some at a time, prints how many were accepted and how many more were leased, and ends or waits
// to be killed.
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import type { LimitStore } from '../../src/limits/lease.ts';
import { Limiter } from '../../src/limits/limiter.ts';
import type { Limit } from '../../src/keys/basics/limit.ts';
import { openStore } from '../../src/store/open.ts';
import { STORES } from './features.ts';

const [, , task, database = '', keyId = '', limit = '', requests = ''] = process.argv;
const store = await openStore({ database }, { features: STORES });
let leased = 0;
const limits: LimitStore = {
  async lease(asked) {
    const grants = await store.limits.lease(asked);
    leased += grants[0]?.ahead ?? 0;
    return grants;
  },
};
const limiter = new Limiter({
  store: limits,
  elapsed: () => performance.now(),
  schedule: (work, delay) => void setTimeout(work, delay).unref(),
  id: `${process.pid}`,
});
const restrictions = { limitsId: 'key', limits: [{ keyId, limit: limit as Limit }], networks: [], audiences: [] };

writeSync(1, 'ready\n');
await once(process.stdin, 'data');
let admitted = 0;
for (let made = 0; made < Number(requests);) {
  const together = 1 + (made % 7);
  const answers = await Promise.all(Array.from({ length: together }, async () => limiter.enter(restrictions)));
  admitted += answers.filter((answer) => answer !== 'gone' && answer.isWithin).length;
  made += together;
}
writeSync(1, `${JSON.stringify({ admitted, leased })}\n`);
if (task === 'hold') setInterval(() => {}, 1000);
else {
  process.stdin.destroy();
  await limiter.finish();
  await store.close();
}
