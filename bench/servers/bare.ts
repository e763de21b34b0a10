import { createServer, type IncomingMessage } from 'node:http';
import { firstItems, resizeItem } from '../items.ts';
import { readKeys } from '../stores.ts';
import { type Caller, folder, listenAndReport, naiveCheck } from './common.ts';

interface Body {
  query: string;
  variables?: { n: number; id: string; size: number };
}

/** The lower bound, without GraphQL: it parses the body, searches it for words, and sends the matching response. */
const [anyone] = readKeys(folder);
const check = process.argv[3] === 'open' ? () => anyone : naiveCheck();
const forbidden = { message: 'This key lacks ITEM:DELETE_ANY.', path: ['drafts'], extensions: { code: 'FORBIDDEN' } };

function answerTo({ query, variables }: Body, { id, name, roles }: Caller): object {
  const me = { id, name, roles };
  if (query.includes('__typename'))
    return { data: { items: firstItems(variables!.n).map((item) => ({ ...item, __typename: 'Item' })) } };
  if (query.includes('items')) return { data: { items: firstItems(variables!.n) } };
  if (query.startsWith('mutation')) {
    const item = resizeItem(variables!.id, variables!.size);
    return { data: { resizeItem: { id: item.id, size: item.size } } };
  }
  if (query.includes('drafts')) return { errors: [forbidden], data: { me, drafts: null } };
  return { data: { [/n\d+/.exec(query)?.[0] ?? 'me']: me } };
}

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
    const answer = JSON.stringify(answerTo(JSON.parse(text) as Body, caller));
    outgoing
      .writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) })
      .end(answer);
  });
});
listenAndReport(server);
