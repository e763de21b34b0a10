import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { routeTemplate, templateNames } from '../../../../src/features/routes/cli/route-templates.ts';
import { checkRoutes } from '../../../../src/features/routes/cli/routes.ts';
import { loadConfig } from '../../../../src/config/load-config.ts';
import { byRoutes, readUpstreams } from '../../../../src/features/guard/access.ts';
import { serveGuard } from '../../../../src/features/guard/guard.ts';
import { OPERATOR } from '../../../../src/keys/authorization/principal.ts';
import { NO_LOG } from '../../../../src/log.ts';
import { createRouter } from '../../../../src/features/routes/index.ts';
import { configFile } from '../../../support/config-file.ts';
import { openTestKeys } from '../../../support/keys.ts';
import { tempFolder } from '../../../support/temp.ts';

const SECRET = '0123456789abcdef0123456789abcdef';

/** How each service expects its key, by its documentation. */
const ACCEPTS: Record<string, (headers: IncomingHttpHeaders) => boolean> = {
  sonarr: (headers) => headers['x-api-key'] === SECRET,
  radarr: (headers) => headers['x-api-key'] === SECRET,
  'home-assistant': ({ authorization }) => authorization === `Bearer ${SECRET}`,
  immich: (headers) => headers['x-api-key'] === SECRET,
  jellyfin: ({ authorization }) => authorization === `MediaBrowser Token="${SECRET}"`,
  grafana: ({ authorization }) => authorization === `Bearer ${SECRET}`,
  gitea: ({ authorization }) => authorization === `token ${SECRET}`,
  'docker-registry': ({ authorization }) =>
    authorization === `Basic ${Buffer.from(`svc-api:${SECRET}`).toString('base64')}`,
};

describe('the template of', () => {
  for (const name of templateNames())
    it(`${name} lets the expected requests through the guard, with the key of the service`, async () => {
      const seen: string[] = [];
      const service = createServer(({ headers, method, url }, outgoing) => {
        seen.push(`${method} ${url}`);
        outgoing.writeHead(ACCEPTS[name]!(headers) ? 200 : 401).end();
      });
      await once(service.listen(0, '127.0.0.1'), 'listening');
      const file = join(tempFolder(), 'secret');
      writeFileSync(file, name === 'jellyfin' ? `Token="${SECRET}"` : SECRET, { mode: 0o600 });
      const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
      const template = routeTemplate(name, { host: 'app.example', url, file });
      const expectations = expectationsIn(template);
      assert.ok(expectations.some(({ isAllowed }) => isAllowed) && expectations.some(({ isAllowed }) => !isAllowed));
      const path = configFile(template);
      const config = await loadConfig({ file: path, env: {} });
      const { json } = await checkRoutes({ ...config, file: path, additions: {} });
      const { unreachable, unusedUpstreams } = json as { unreachable: unknown[]; unusedUpstreams: string[] };
      assert.deepEqual([unreachable, unusedUpstreams], [[], []]);

      const { resources, roles, routes, credentials, trust } = config;
      const { keys, store } = await openTestKeys({ resources, roles, asServer: true });
      const guard = await serveGuard(
        { forwardCredential: false, timeoutMs: 60_000, log: NO_LOG },
        {
          keys,
          requirements: byRoutes(createRouter(routes)),
          credentials,
          trust,
          upstreams: readUpstreams(config.upstreams, undefined, routes),
        },
        { host: '127.0.0.1', port: 0 },
      );
      const { port } = new URL(guard.url);
      const secrets = new Map<string, string>();
      for (const { method, path, grants, isAllowed } of expectations) {
        if (!secrets.has(grants)) {
          const permissions = grants.split(', ');
          const created = await keys.create({ name: `Key ${secrets.size}`, permissions }, OPERATOR);
          secrets.set(grants, created.key);
        }
        const key = secrets.get(grants)!;
        const by = credentials.includes('basic')
          ? `Basic ${Buffer.from(`any:${key}`).toString('base64')}`
          : `Bearer ${key}`;
        seen.length = 0;
        const status = await statusOf(Number(port), { method, path, authorization: by });
        assert.deepEqual(
          [status, seen],
          isAllowed ? [200, [`${method} ${path}`]] : [403, []],
          `${method} ${path} with ${grants}`,
        );
      }
      assert.equal(await statusOf(Number(port), { method: 'GET', path: '/' }), 401);
      await guard.stop(0);
      service.closeAllConnections();
      service.close();
      await store.close();
    });
});

/** The expectations in a configuration: `GET https://host/path with A:READ_ANY, B:READ_ANY is allowed`. */
function expectationsIn(text: string) {
  const line = /^ {2}- (\w+) https:\/\/[^/]+(\S+) with (.+) is (allowed|forbidden)$/gm;
  return Array.from(text.matchAll(line), ([, method, path, grants, outcome]) => ({
    method: method!,
    path: path!,
    grants: grants!,
    isAllowed: outcome === 'allowed',
  }));
}

async function statusOf(
  port: number,
  { method, path, authorization }: { method: string; path: string; authorization?: string },
): Promise<number> {
  const headers = { host: 'app.example', ...(authorization && { authorization }) };
  const asking = request({ port, host: '127.0.0.1', method, path, headers }).end();
  const [reply] = (await once(asking, 'response')) as [IncomingMessage];
  reply.resume();
  await once(reply, 'close');
  return reply.statusCode!;
}
