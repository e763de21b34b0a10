import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { testCli } from '../../support/cli.ts';
import { blockWith } from '../../support/pages.ts';
import { ROOT } from '../../support/process.ts';
import { tempFolder } from '../../support/temp.ts';

const PROXIES = ['caddy', 'nginx', 'traefik', 'haproxy', 'apache', 'envoy'] as const;
const print = (proxy: string, { resource = 'WIKI', upstream = 'http://127.0.0.1:3000' } = {}, ...more: string[]) =>
  testCli().run(['proxy', proxy, '--resource', resource, '--upstream', upstream, ...more]);

describe('proxy', () => {
  it('prints the example, if the case is that of the example', async () => {
    for (const [proxy, file] of [
      ['caddy', 'caddy/Caddyfile'],
      ['nginx', 'nginx/grafana.conf'],
      ['traefik', 'traefik/grafana.yml'],
      ['haproxy', 'haproxy/haproxy.cfg'],
      ['apache', 'apache/grafana.conf'],
    ] as const) {
      const { stdout, code } = await print(proxy, { resource: 'GRAFANA' });
      assert.deepEqual([code, stdout], [0, readFileSync(join(ROOT, 'examples', file), 'utf8')], proxy);
    }
  });

  it('prints what the page about Caddy has', async () => {
    const page = 'docs/how-to/caddy.md';
    const command = /svc-api (proxy caddy [^\n`>]*) >/.exec(readFileSync(join(ROOT, page), 'utf8'))![1]!;
    const { stdout } = await testCli().run(command.split(' '));
    assert.equal(stdout, blockWith('forward_auth', page, 'caddyfile'));
  });

  it('leaves nothing of the example, for another resource, upstream and host', async () => {
    for (const proxy of PROXIES) {
      const place = { resource: 'wiki', upstream: 'http://10.0.0.7:81' };
      const { stdout, code } = await print(proxy, place, '--domain', 'Pages.example.com');
      assert.equal(code, 0);
      assert.doesNotMatch(stdout, /grafana|example\.org|127\.0\.0\.1:3000|port_value: 3000/i, proxy);
      assert.match(stdout, /pages\.example\.com/);
      assert.match(stdout, /10\.0\.0\.7'?(?::|, port_value: )81/);
      assert.match(stdout, /resource[= ]WIKI/);
    }
  });

  it('replaces nothing in its arguments', async () => {
    for (const proxy of PROXIES) {
      const { stdout } = await print(proxy, { upstream: 'http://grafana:3000' }, '--domain', 'grafana.example.net');
      assert.match(stdout, /grafana\.example\.net/, proxy);
      assert.match(stdout, /(?:\/\/|server |')grafana'?(?::|, port_value: )3000/, proxy);
    }
  });

  it('asks for no resource where routes decide, and names parts by the host', async () => {
    for (const proxy of PROXIES) {
      const { stdout, stderr, code } = await testCli().run(
        `proxy ${proxy} --routes --upstream http://10.0.0.7:81 --domain pages.example.com`.split(' '),
      );
      assert.equal(code, 0);
      assert.doesNotMatch(stdout, /resource[= ]|grafana|example\.org/i, proxy);
      assert.match(stdout, /pages\.example\.com/);
      assert.match(stderr, /routes for pages\.example\.com/);
      assert.match(stderr + stdout, /\/auth\/|svc-api guard http:\/\/10\.0\.0\.7:81$/m);
    }
  });

  it('takes a resource or routes, and these with their host', async () => {
    for (const flags of ['', '--resource WIKI --routes --domain a.example.org', '--routes']) {
      const args = `proxy nginx --upstream http://10.0.0.7:81 ${flags}`.trim().split(' ');
      const { stdout, code } = await testCli().run(args);
      assert.deepEqual([code, stdout], [2, ''], flags);
    }
  });

  it('sends svc-api the key in each header that svc-api.yaml allows for it, and removes it', async () => {
    const config = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(config, 'credentials: [bearer, { header: X-Api-Key }, { header: My-Key }]');
    for (const [proxy, remove] of Object.entries({
      caddy: (header: string) => `request_header -${header}\n`,
      nginx: (header: string) => `proxy_set_header ${header}      "";\n`,
      traefik: (header: string) => `${header}: ''\n`,
      haproxy: (header: string) => `http-request del-header ${header}\n`,
      envoy: (header: string) => `- ${header}\n`,
    })) {
      const plain = (await print(proxy)).stdout;
      const { stdout } = await print(proxy, {}, '--config', config);
      const added = stdout.split('\n').filter((line) => !plain.includes(line));
      assert.deepEqual(
        added.map((line) => `${line.trim()}\n`),
        [
          ...(proxy === 'envoy' ? ['- exact: x-api-key\n', '- exact: my-key\n'] : []),
          remove('x-api-key'),
          remove('my-key'),
        ],
        proxy,
      );
    }
  });

  it('names the host by the resource', async () => {
    const { stdout } = await print('caddy', { resource: 'HOME_WIKI' });
    assert.match(stdout, /^home-wiki\.example\.org \{$/m);
  });

  it('verifies the certificate of an upstream by TLS, and reaches Unix sockets', async () => {
    const traefik = parse((await print('traefik', { upstream: 'https://wiki.lan' })).stdout) as {
      http: { services: { wiki: object } };
    };
    assert.deepEqual(traefik.http.services.wiki, { loadBalancer: { servers: [{ url: 'https://wiki.lan' }] } });
    const clusterFor = async (upstream: string) => {
      const { clusters } = parse((await print('envoy', { upstream })).stdout) as { clusters: { name: string }[] };
      return JSON.stringify(clusters.find(({ name }) => name === 'wiki'));
    };
    const tls = await clusterFor('https://wiki.lan:8443');
    assert.match(tls, /"sni":"wiki\.lan".*"exact":"wiki\.lan".*"address":"wiki\.lan","port_value":8443/);
    assert.match(await clusterFor('http://[::1]:3000'), /"address":"::1","port_value":3000/);
    assert.match(
      await clusterFor('http+unix:///run/wiki.sock'),
      /"type":"STATIC".*"pipe":\{"path":"\/run\/wiki\.sock"\}/,
    );
    assert.match((await print('nginx', { upstream: 'https://wiki.lan' })).stdout, /proxy_ssl_verify on;/);
    assert.match(
      (await print('haproxy', { upstream: 'https://wiki.lan' })).stdout,
      /wiki\.lan:443 ssl verify required/,
    );
  });

  it('says on stderr what else is needed', async () => {
    for (const [proxy, file] of [
      ['haproxy', 'svc-api.lua'],
      ['apache', 'svc-api-unavailable.asis'],
    ] as const) {
      const { stdout, stderr } = await print(proxy);
      const [, from, to] = /^Copy (\S+) to (\S+)\.$/m.exec(stderr)!;
      assert.ok(from!.endsWith(`/examples/${proxy}/${file}`) && existsSync(from!), stderr);
      assert.ok(stdout.includes(to!));
      const json = JSON.parse((await print(proxy, {}, '--json')).stdout) as object;
      assert.deepEqual(json, { proxy, configuration: stdout, files: [{ from, to }] });
    }
    assert.match((await print('apache')).stderr, /svc-api guard http:\/\/127\.0\.0\.1:3000 --resource WIKI$/m);
    assert.match((await print('nginx')).stderr, /resources: \[WIKI\]/);
    // A built-in resource needs no declaration.
    assert.equal((await print('nginx', { resource: 'DASHBOARD' })).stderr, '');
  });

  it('refuses unknown arguments, and those that could be read as configuration', async () => {
    for (const [proxy, place, more, message] of [
      ['ngnix', {}, [], 'There is no example for "ngnix". Did you mean nginx? The proxies are caddy, nginx,'],
      ['caddy', { resource: 'a b' }, [], '"A B" is not a resource name'],
      ['caddy', { upstream: 'localhost:3000' }, [], 'Did you mean http://localhost:3000?'],
      ['caddy', { upstream: 'http://a/b' }, [], '"http://a/b" must not have a path'],
      ['nginx', { upstream: 'http+unix:///run/a;b' }, [], 'Use letters, digits'],
      ['nginx', { upstream: 'http+unix:///run/a%0Ab' }, [], 'Use letters, digits'],
      ['nginx', { upstream: 'http://a;b' }, [], 'Use letters, digits'],
      ['traefik', { upstream: 'http+unix:///run/a' }, [], 'Traefik cannot use Unix sockets.'],
      ['caddy', {}, ['--domain', '*.example.org'], 'Name one host'],
      ['caddy', {}, ['--domain', '*'], 'Name one host'],
      ['caddy', {}, ['--domain', 'a b'], '"a b" is not a host'],
      ['caddy', {}, ['--domain', 'a{b'], 'a{b'],
      ['caddy', {}, ['--domain', 'a.example.org:8443'], 'leave out the port'],
    ] as const) {
      const { stdout, stderr, code } = await print(proxy, place, ...more);
      const said = stderr.replaceAll(/\n +/g, ' ');
      assert.deepEqual([code, stdout, said.includes(message)], [2, '', true], stderr);
    }
  });
});
