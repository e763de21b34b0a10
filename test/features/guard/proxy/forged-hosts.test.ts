import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import express from 'express';
import { byRoutes } from '../../../../src/features/guard/access.ts';
import { Networks } from '../../../../src/keys/basics/networks.ts';
import { createRouter } from '../../../../src/features/routes/router.ts';
import { type GuardedService, startGuarded } from '../support/guard.ts';
import { connectRaw } from '../../../support/raw-connection.ts';

/** How a service that trusts every proxy reads a request. */
interface Taken {
  host: string;
  hostname: string;
  protocol: string;
  ip: string;
  headers: NodeJS.Dict<string | string[]>;
}

describe('a service that believes every header of a proxy', () => {
  let service: GuardedService;
  const urls: string[] = [];
  before(async () => {
    const app = express().set('trust proxy', true);
    app.use((request, response) => {
      const { host, hostname, protocol, ip, headers } = request;
      response.end(JSON.stringify({ host, hostname, protocol, ip, headers }));
    });
    service = await startGuarded(createServer(app));
    const route = (host: string, allow: 'open' | 'key') => ({
      host,
      path: '/**',
      allow: { kind: allow },
      preflightOpen: false,
    });
    const requirements = byRoutes(createRouter([route('www.example', 'open'), route('admin.example', 'key')]));
    for (const trust of [['127.0.0.0/8'], ['192.0.2.0/24']])
      urls.push(await service.beside({ requirements, trust: new Networks(trust) }));
  });
  after(() => service.stop());

  const FORGED = [
    'X-Forwarded-Host: admin.example',
    'x-forwarded-host: www.example, admin.example',
    'X_Forwarded_Host: admin.example',
    'Forwarded: host=admin.example;for=192.0.2.66;proto=https',
    'X-Forwarded-For: 192.0.2.66',
    'X-Forwarded-Server: admin.example',
    'X-Forwarded-Port: 4711',
    'X-Forwarded-Prefix: /admin',
    'X-Original-Host: admin.example',
    'X-HTTP-Host-Override: admin.example',
    'X-Host: admin.example',
  ];

  it('sees the host that the request was judged by, for any combination of forged ones', async () => {
    for (let chosen = 0; chosen < 2 ** FORGED.length; chosen += 1) {
      const lines = FORGED.filter((_, index) => chosen & (1 << index));
      // All combinations of the first five, with all or none of the others.
      if (![0, 63].includes(chosen >> 5)) continue;
      for (const url of urls) {
        const raw = connectRaw(url);
        raw.request('GET / HTTP/1.1', 'Host: www.example:8443', ...lines);
        const text = await raw.receives(/\}$/);
        raw.socket.destroy();
        const { host, hostname, headers } = JSON.parse(text.slice(text.indexOf('\r\n\r\n'))) as Taken;
        assert.deepEqual([host, hostname], ['www.example:8443', 'www.example'], lines.join());
        assert.deepEqual(headers['x-forwarded-host'], 'www.example:8443');
        for (const [name, value] of Object.entries(headers))
          assert.doesNotMatch(String(value), /admin|^4711$/, `${name}, of ${lines.join()}`);
        // The address of a client that is not a trusted proxy is that of its connection.
        if (url === urls[1]) assert.doesNotMatch(JSON.stringify(headers), /192\.0\.2\.66/);
      }
    }
  });

  it('is not reached at another host than the checked one', async () => {
    for (const url of urls) {
      const raw = connectRaw(url);
      raw.request('GET / HTTP/1.1', 'Host: admin.example', 'X-Forwarded-Host: www.example');
      await raw.receives(/^HTTP\/1\.1 401 /);
      raw.socket.destroy();
    }
  });
});
