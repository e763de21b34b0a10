import { writeSync } from 'node:fs';
import { Hono } from 'hono';
import { bearerAuth, openKeys } from '../../src/index.ts';
import { collectingLog } from './log.ts';

/** A host with a route behind the bearer check: refuses a key three times, prints its log, and ends. */
const keys = await openKeys({ database: process.argv[2]!, lockWaitMs: 600_000 });
const { log } = collectingLog();
log.info = (fields, message) => void writeSync(1, `${JSON.stringify({ ...fields, message })}\n`);
const app = new Hono().use(bearerAuth({ keys, log }));
for (let request = 0; request < 3; request += 1)
  await app.request('/', { headers: { authorization: 'Bearer nonsense' } });
await keys.close();
