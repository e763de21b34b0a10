import { createServer } from 'node:http';
import { storePath } from '../stores.ts';
import { openKeys } from '../svc-api.ts';
import { CONSTANT } from '../workloads.ts';
import { folder, listenAndReport } from './common.ts';

/** The library's check alone, in a server that does nothing else. */
const keys = await openKeys({ database: storePath(folder), mustExist: true });
const answer = JSON.stringify(CONSTANT);

const server = createServer(async (incoming, outgoing) => {
  const { authorization = '' } = incoming.headers;
  const result = authorization.startsWith('Bearer ')
    ? await keys.authenticate(authorization.slice('Bearer '.length))
    : undefined;
  if (!result || 'refused' in result) {
    outgoing.writeHead(401).end();
    return;
  }
  outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length }).end(answer);
});
listenAndReport(server);
