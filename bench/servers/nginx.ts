import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { upstreamPort } from '../guard.ts';
import { folder, ready } from './common.ts';

/** nginx as a proxy that checks nothing, with one process and keep-alive connections. */
const port = await freePort();
const path = join(folder, 'nginx.conf');
writeFileSync(
  path,
  `daemon off; master_process off; pid ${folder}/nginx.pid; error_log stderr;
  events { worker_connections 1024; }
  http {
    access_log off;
    ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
    upstream constant { server 127.0.0.1:${upstreamPort(folder)}; keepalive 64; }
    server {
      listen 127.0.0.1:${port};
      keepalive_requests 1000000000;
      location / { proxy_pass http://constant; proxy_http_version 1.1; proxy_set_header Connection ""; }
    }
  }`,
);
// When this process is killed, its pipe closes, and nginx ends.
const nginx = spawn('sh', ['-c', 'nginx -c "$0" & cat; kill $!', path], { stdio: ['pipe', 'inherit', 'inherit'] });
await listening();
ready(port);

async function listening(): Promise<void> {
  for (;;) {
    try {
      await fetch(`http://127.0.0.1:${port}/`);
      return;
    } catch {
      if (nginx.exitCode !== null) throw new Error('nginx did not start.');
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port: free } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return free;
}
