import { Agent, createServer, request } from 'node:http';
import { folder, listenAndReport } from './common.ts';
import { upstreamPort } from '../guard.ts';

/** The proxy that most people would write: it checks nothing and handles no failures. */
const agent = new Agent({ keepAlive: true });
const port = upstreamPort(folder);

listenAndReport(
  createServer((incoming, outgoing) => {
    const { method, url: path, headers } = incoming;
    const forwarded = request({ host: '127.0.0.1', port, method, path, headers, agent }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.on('error', () => outgoing.writeHead(502).end());
    incoming.pipe(forwarded);
  }),
);
