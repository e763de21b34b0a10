import { createServer } from 'node:http';
import { storePath } from '../stores.ts';
import { openKeys } from '../svc-api.ts';
import { CONSTANT } from '../items.ts';
import { folder, listenAndReport } from './common.ts';

/** Only the library's check, in a minimal server. */
const keys = await openKeys({ database: storePath(folder), ifMissing: 'fail' });
const answer = JSON.stringify(CONSTANT);

const server = createServer(async (incoming, outgoing) => {
  const checked = await keys.check(incoming);
  if (!checked.ok) {
    outgoing.writeHead(checked.status, checked.headers).end(checked.body);
    return;
  }
  outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length }).end(answer);
});
listenAndReport(server);
