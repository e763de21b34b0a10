import { createServer } from 'node:http';
import { CONSTANT } from '../items.ts';
import { listenAndReport } from './common.ts';

/** The answer of the service behind the proxies. */
const answer = JSON.stringify(CONSTANT);
listenAndReport(
  createServer((_, outgoing) => {
    outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length }).end(answer);
  }),
);
