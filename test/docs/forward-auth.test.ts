import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { NOBODY } from '../../src/features/guard/identity-headers.ts';
import { ASKING, startAskedServer } from '../features/guard/support/forward-auth.ts';
import { blockWith, pathWithCli, runBlock } from '../support/pages.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

const PAGE = 'docs/proxies.md';
const text = readFileSync(join(ROOT, PAGE), 'utf8');
const ofExample = (path: string) => readFileSync(join(ROOT, 'examples', path), 'utf8');
const IDENTITY = Object.keys(NOBODY);

describe(PAGE, () => {
  it('creates a key for a resource that is declared', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'svc-api.yaml'), blockWith('resources: [GRAFANA]', 'examples/guard/README.md', 'yaml'), {
      mode: 0o600,
    });
    const env = {
      PATH: pathWithCli(folder),
      SVC_API_DATABASE: join(folder, 'keys.sqlite'),
      SVC_API_CONFIG: join(folder, 'svc-api.yaml'),
    };
    const { code, stdout, stderr } = await runBlock(blockWith('apikey create', PAGE), folder, env);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^svc_/);
  });

  it('has the endpoints, and the identity headers that come with a 200', async () => {
    const server = await startAskedServer();
    for (const [name, path] of Object.entries(ASKING).map(([name, ask]) => [name, ask({}).target.replace(/\/$/, '')])) {
      assert.ok(text.includes(`\`${path}\``), path);
      // The endpoint exists: only the proxy's headers are missing.
      await server.send({ target: name === 'envoy' ? `${path}/` : path!, headers: [] });
      const { reason } = server.lines.at(-1)!.fields as { reason: string };
      assert.equal(reason, 'contract');
    }
    const ofGuard = readFileSync(join(ROOT, 'docs/guard.md'), 'utf8');
    for (const name of IDENTITY) for (const page of [text, ofGuard]) assert.ok(page.includes(`| \`${name}\` |`), name);
    await server.stop();
  });

  it('configures Traefik to ask as the exact requests of the tests do', () => {
    const { http } = parse(ofExample('traefik/grafana.yml')) as {
      http: { middlewares: { 'svc-api-grafana': { forwardAuth: { address: string; authResponseHeaders: string[] } } } };
    };
    const { address, authResponseHeaders } = http.middlewares['svc-api-grafana'].forwardAuth;
    const { pathname, search } = new URL(address);
    assert.equal(pathname + search, ASKING.traefik({}, '?resource=GRAFANA').target);
    assert.deepEqual(authResponseHeaders, [...IDENTITY, 'Cookie']);
  });

  it('lets Traefik accept HTTPS only', () => {
    const { http } = parse(ofExample('traefik/grafana.yml')) as {
      http: { routers: Record<string, { entryPoints?: string[]; tls?: object }> };
    };
    for (const { entryPoints, tls } of Object.values(http.routers)) {
      assert.deepEqual(entryPoints, ['websecure']);
      assert.deepEqual(tls, {});
    }
  });

  it('configures Envoy to ask as the exact requests of the tests do', () => {
    const {
      http_filters: [filter],
    } = parse(ofExample('envoy/grafana.yaml')) as {
      http_filters: {
        typed_config: {
          http_service: {
            path_prefix: string;
            authorization_response: { allowed_upstream_headers: { patterns: { exact: string }[] } };
          };
        };
      }[];
    };
    const { path_prefix: prefix, authorization_response: response } = filter!.typed_config.http_service;
    assert.equal(`${prefix}/x`, ASKING.envoy({ target: '/x' }, '?resource=GRAFANA').target);
    const copied = response.allowed_upstream_headers.patterns.map(({ exact }) => exact);
    assert.deepEqual(
      copied,
      [...IDENTITY, 'Cookie'].map((name) => name.toLowerCase()),
    );
  });
});
