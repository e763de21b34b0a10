import { createServer } from 'node:http';
import { storePath } from '../stores.ts';
import { openKeys } from '../svc-api.ts';
import { CONSTANT } from '../items.ts';
import { folder, listenAndReport } from './common.ts';

/** The check alone, as the library has it, in a server that has nothing else. */
const keys = await openKeys({ database: storePath(folder), ifMissing: 'fail' });
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
