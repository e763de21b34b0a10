import { createServer } from 'node:http';
import { CONSTANT } from '../items.ts';
import { listenAndReport } from './common.ts';

/** What stands behind the proxies. */
const answer = JSON.stringify(CONSTANT);
listenAndReport(
  createServer((_, outgoing) => {
    outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length }).end(answer);
  }),
);
