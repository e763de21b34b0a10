import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The fate of a request; `pass` is a good network. */
export type Fate =
  | 'pass'
  /** Closes the connection before the request arrives. */
  | 'drop'
  /** Delivers half of the answer. */
  | 'half'
  /** Closes the connection instead of delivering the answer. */
  | 'lose'
  /** Delivers nothing, and closes nothing. */
  | 'silence'
  /** Sends the request to the origin twice. */
  | 'double'
  /** Answers with this status. */
  | { readonly status: number };

/** A network between an edge and its origin. */
export interface FaultyOrigin {
  readonly url: string;
  /** Decides about each request; a promise delays it. Default: all pass. */
  fate: (incoming: IncomingMessage) => Fate | Promise<Fate>;
  /** How many polls, snapshots and other requests passed without a fault. */
  readonly counts: { polls: number; snapshots: number; others: number };
  /** The URL of the current origin. */
  to: string;
  /** Closes all connections from edges. */
  cut(): void;
  close(): Promise<void>;
}

/** Starts such a network in front of an origin. */
export async function startFaultyOrigin(first: string): Promise<FaultyOrigin> {
  const counts = { polls: 0, snapshots: 0, others: 0 };
  const ask = async (incoming: IncomingMessage, outgoing: ServerResponse, body: Buffer) => {
    const { method, url, headers } = incoming;
    const sent = request(`${origin.to}${url}`, { method, headers, agent: false });
    // The client has gone and needs no answer.
    outgoing.once('close', () => sent.destroy());
    sent.end(body);
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const pieces: Buffer[] = [];
    for await (const piece of answer) pieces.push(piece as Buffer);
    return { status: answer.statusCode!, headers: answer.headers, body: Buffer.concat(pieces) };
  };
  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(piece as Buffer);
    const body = Buffer.concat(pieces);
    const fate = await origin.fate(incoming);
    if (fate === 'drop') return void incoming.socket.destroy();
    if (fate === 'silence') return undefined;
    if (typeof fate === 'object') return void outgoing.writeHead(fate.status).end();
    if (fate === 'double') await ask(incoming, outgoing, body);
    const answer = await ask(incoming, outgoing, body);
    if (fate === 'lose') return void incoming.socket.destroy();
    const { 'transfer-encoding': _, ...headers } = answer.headers;
    outgoing.writeHead(answer.status, { ...headers, 'content-length': `${answer.body.length}` });
    if (fate === 'half') {
      outgoing.write(answer.body.subarray(0, answer.body.length / 2), () => incoming.socket.destroy());
      return undefined;
    }
    outgoing.end(answer.body);
    await once(outgoing, 'close');
    const { url = '' } = incoming;
    counts[url.startsWith('/feed?') ? 'polls' : url === '/feed/snapshot' ? 'snapshots' : 'others'] += 1;
    return undefined;
  };
  const server = createServer((incoming, outgoing) => {
    handle(incoming, outgoing).catch(() => incoming.socket.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin: FaultyOrigin = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fate: () => 'pass',
    counts,
    to: first,
    cut: () => server.closeAllConnections(),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return origin;
}
