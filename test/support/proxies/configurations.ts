import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { blockWith } from '../pages.ts';
import { ROOT } from '../process.ts';
import { CERTIFICATE } from '../tls-proxy.ts';

/** The site in all test configurations. */
export const SITE = 'grafana.example.org';

export const KEY_FILE = join(ROOT, 'test/fixtures/tls/key.pem');

/** The folder and ports of a proxy's surroundings. */
export interface Place {
  /** The folder for the proxy's files. */
  folder: string;
  /** The port of the proxy. */
  port: number;
  /** The port of svc-api, which the proxy asks or forwards to. */
  svcApi: number;
  service: number;
}

/** Replaces texts in a page or an example. Each must occur there. */
export type Adapt = (text: string, replacements: Readonly<Record<string, string>>) => string;

/** A proxy configuration from the documentation or an example, as published. */
export interface Configuration {
  /** The page or example. */
  title: string;
  program: 'nginx' | 'caddy' | 'haproxy' | 'apache2';
  /** The svc-api server that checks keys. */
  by: 'serve' | 'guard';
  /** The resource whose permissions the proxy, or the guard behind it, requires. */
  resource: string;
  /** The part of the configuration that names the resource; empty if the guard names it. */
  requirement: string;
  /** More flags for the guard. */
  flags?: readonly string[];
  /** Writes the proxy's files. @returns the program's arguments */
  write(place: Place, adapt: Adapt): string[];
}

const ofExample = (path: string) => readFileSync(join(ROOT, 'examples', path), 'utf8');

/** Writes a configuration of nginx with a site. @returns the program's arguments */
export function writeNginx(site: string, { folder }: Pick<Place, 'folder'>): string[] {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder};`);
  const main = `user root; daemon off; pid ${folder}/pid; error_log stderr; events {}`;
  writeFileSync(join(folder, 'nginx.conf'), `${main} http { access_log off; ${paths.join(' ')}\n${site} }`);
  return ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')];
}

const placeOfNginx = ({ port }: Place) => ({
  'listen 443': `listen 127.0.0.1:${port}`,
  '/etc/ssl/grafana.example.org.pem': CERTIFICATE,
  '/etc/ssl/private/grafana.example.org.key': KEY_FILE,
});

/** The same for Caddy. */
export function writeCaddy(site: string, { folder }: Pick<Place, 'folder'>): string[] {
  const options = `admin off\nauto_https disable_certs\ndefault_sni ${SITE}`;
  writeFileSync(join(folder, 'Caddyfile'), `{\n${options}\n}\n${site}`);
  return ['run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile'];
}

const placeOfCaddy = (name: string, { port, svcApi, service }: Place) => ({
  [`${name} {`]: `https://${SITE}:${port} {\n\tbind 127.0.0.1\n\ttls ${CERTIFICATE} ${KEY_FILE}`,
  '127.0.0.1:4000': `127.0.0.1:${svcApi}`,
  '127.0.0.1:3000': `127.0.0.1:${service}`,
});

/** The configurations that protect a service. */
export const CONFIGURATIONS: readonly Configuration[] = [
  {
    title: 'examples/nginx',
    program: 'nginx',
    by: 'serve',
    resource: 'GRAFANA',
    requirement: '?resource=GRAFANA',
    write: (place, adapt) =>
      writeNginx(
        adapt(ofExample('nginx/grafana.conf'), {
          ...placeOfNginx(place),
          '127.0.0.1:4000': `127.0.0.1:${place.svcApi}`,
          '127.0.0.1:3000': `127.0.0.1:${place.service}`,
        }),
        place,
      ),
  },
  {
    title: 'examples/guard',
    program: 'nginx',
    by: 'guard',
    resource: 'GRAFANA',
    requirement: '',
    flags: /--health-path \S+/.exec(blockWith('--health-path', 'examples/guard/README.md'))![0].split(' '),
    write(place, adapt) {
      const { port, svcApi } = place;
      const location = adapt(blockWith('auth_request /guard/health', 'examples/guard/README.md', 'nginx'), {
        '127.0.0.1:8080': `127.0.0.1:${svcApi}`,
      });
      const tls = `ssl_certificate ${CERTIFICATE}; ssl_certificate_key ${KEY_FILE};`;
      return writeNginx(
        `server { listen 127.0.0.1:${port} ssl http2; server_name ${SITE}; ${tls} ${location} }`,
        place,
      );
    },
  },
  {
    title: 'examples/caddy',
    program: 'caddy',
    by: 'serve',
    resource: 'GRAFANA',
    requirement: '?resource=GRAFANA',
    write: (place, adapt) =>
      writeCaddy(adapt(ofExample('caddy/Caddyfile'), placeOfCaddy('\ngrafana.example.org', place)), place),
  },
  {
    title: 'examples/haproxy',
    program: 'haproxy',
    by: 'serve',
    resource: 'GRAFANA',
    requirement: '?resource=GRAFANA',
    write({ folder, port, svcApi, service }, adapt) {
      const config = adapt(ofExample('haproxy/haproxy.cfg'), {
        '/etc/haproxy/svc-api.lua': join(folder, 'svc-api.lua'),
        '/etc/haproxy/grafana.example.org.pem': join(folder, 'site.pem'),
        ':443': `127.0.0.1:${port}`,
        '127.0.0.1:4000': `127.0.0.1:${svcApi}`,
        '127.0.0.1:3000': `127.0.0.1:${service}`,
      });
      const lua = ofExample('haproxy/svc-api.lua').replace('127.0.0.1:4000', `127.0.0.1:${svcApi}`);
      writeFileSync(join(folder, 'svc-api.lua'), lua);
      writeFileSync(join(folder, 'haproxy.cfg'), config);
      writeFileSync(join(folder, 'site.pem'), readFileSync(CERTIFICATE, 'utf8') + readFileSync(KEY_FILE, 'utf8'));
      return ['-db', '-f', join(folder, 'haproxy.cfg')];
    },
  },
  {
    title: 'examples/apache',
    program: 'apache2',
    by: 'guard',
    resource: 'GRAFANA',
    requirement: '',
    write({ folder, port, svcApi }, adapt) {
      const site = adapt(ofExample('apache/grafana.conf'), {
        '127.0.0.1:8080': `127.0.0.1:${svcApi}`,
        'localhost:8080': `localhost:${svcApi}`,
        '*:443': `127.0.0.1:${port}`,
        '/etc/apache2/svc-api-unavailable.asis': join(folder, 'svc-api-unavailable.asis'),
        '/etc/ssl/grafana.example.org.pem': CERTIFICATE,
        '/etc/ssl/private/grafana.example.org.key': KEY_FILE,
      });
      writeFileSync(join(folder, 'svc-api-unavailable.asis'), ofExample('apache/svc-api-unavailable.asis'));
      const modules = /^# a2enmod (.*)$/m.exec(site)![1]!.split(' ');
      const loaded = ['mpm_event', 'authz_core', 'socache_shmcb', ...modules];
      writeFileSync(
        join(folder, 'apache.conf'),
        [
          `ServerRoot ${folder}`,
          `PidFile ${folder}/pid`,
          `DefaultRuntimeDir ${folder}`,
          'ErrorLog "|/bin/cat"',
          'User nobody',
          'Group nogroup',
          'ServerName localhost',
          `Listen 127.0.0.1:${port}`,
          ...loaded.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`),
          site,
        ].join('\n'),
      );
      chmodSync(folder, 0o755);
      return ['-D', 'FOREGROUND', '-f', join(folder, 'apache.conf')];
    },
  },
];
