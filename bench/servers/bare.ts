import { createServer, type IncomingMessage } from 'node:http';
import { ITEMS } from '../workloads.ts';
import { readKeys } from '../stores.ts';
import { folder, listenAndReport, naiveCheck } from './common.ts';

/** The lower bound: no GraphQL at all. It parses the body and responds with the requested data. */
const [anyone] = readKeys(folder);
const check = process.argv[3] === 'open' ? () => anyone : naiveCheck();

function readBody(incoming: IncomingMessage, done: (text: string) => void): void {
  let text = '';
  incoming.setEncoding('utf8');
  incoming.on('data', (chunk: string) => (text += chunk));
  incoming.once('end', () => done(text));
}

const server = createServer((incoming, outgoing) => {
  const caller = check(incoming.headers.authorization);
  if (!caller) {
    outgoing.writeHead(401).end();
    return;
  }
  readBody(incoming, (text) => {
    const { query } = JSON.parse(text) as { query: string };
    const me = { id: caller.id, name: caller.name, roles: caller.roles };
    const answer = JSON.stringify({ data: query.includes('items') ? { items: ITEMS } : { me } });
    outgoing
      .writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) })
      .end(answer);
  });
});
listenAndReport(server);
