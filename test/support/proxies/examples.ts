import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { accepts, freePort } from '../port.ts';
import { ROOT } from '../process.ts';
import { tempFolder } from '../temp.ts';
import { CERTIFICATE } from '../tls-proxy.ts';
import { until } from '../until.ts';
import { SITE } from './client.ts';

/** Where the parts are that a proxy stands between, and what it requires. */
export interface Setting {
  /** The port of svc-api; behind Apache, that of its guard. */
  svcApi: number;
  /** The port of the service. */
  service: number;
  /** Who may pass: keys with a permission, or whom the routes let pass. Default: the permission of the example. */
  by?: 'routes' | 'permission';
  /** What else to replace in the configuration. */
  edits?: Readonly<Record<string, string>>;
}

/** A proxy with the configuration of its example. */
export interface RunningProxy {
  port: number;
  /** What it has printed. */
  output(): string;
  stop(): Promise<void>;
}

/** The configuration of a proxy, ready to run: its program's arguments. */
type Configure = (folder: string, port: number, setting: Required<Setting>) => string[];

const KEY_FILE = join(ROOT, 'test/fixtures/tls/key.pem');

/** A file of an example, with each of these texts replaced, which must all be there. */
function adapt(path: string, replacements: Readonly<Record<string, string>>): string {
  let text = readFileSync(join(ROOT, 'examples', path), 'utf8');
  for (const [old, replacement] of Object.entries(replacements)) {
    if (!text.includes(old)) throw new Error(`examples/${path} has no ${old}`);
    text = text.replaceAll(old, replacement);
  }
  return text;
}

/** What the examples require. */
export const REQUIRED = '?permission=GRAFANA:READ_ANY';

const nginx: Configure = (folder, port, { svcApi, service, by, edits }) => {
  const server = adapt('nginx/grafana.conf', {
    '127.0.0.1:4000': `127.0.0.1:${svcApi}`,
    '127.0.0.1:3000': `127.0.0.1:${service}`,
    'listen 443': `listen 127.0.0.1:${port}`,
    '/etc/ssl/grafana.example.org.pem': CERTIFICATE,
    '/etc/ssl/private/grafana.example.org.key': KEY_FILE,
    ...(by === 'routes' && { [REQUIRED]: '' }),
    ...edits,
  });
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder};`);
  const main = `user root; daemon off; pid ${folder}/pid; error_log stderr; events {}`;
  writeFileSync(join(folder, 'nginx.conf'), `${main} http { access_log off; ${paths.join(' ')}\n${server} }`);
  return ['nginx', '-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')];
};

const caddy: Configure = (folder, port, { svcApi, service, by, edits }) => {
  const site = adapt('caddy/Caddyfile', {
    '127.0.0.1:4000': `127.0.0.1:${svcApi}`,
    '127.0.0.1:3000': `127.0.0.1:${service}`,
    [`\n${SITE} {`]: `\nhttps://${SITE}:${port} {\n\tbind 127.0.0.1\n\ttls ${CERTIFICATE} ${KEY_FILE}`,
    ...(by === 'routes' && { [REQUIRED]: '?' }),
    ...edits,
  });
  const options = `admin off\nauto_https disable_certs\ndefault_sni ${SITE}`;
  writeFileSync(join(folder, 'Caddyfile'), `{\n${options}\n}\n${site}`);
  return ['caddy', 'run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile'];
};

const haproxy: Configure = (folder, port, { svcApi, service, by, edits }) => {
  const config = adapt('haproxy/haproxy.cfg', {
    '/etc/haproxy/svc-api.lua': join(folder, 'svc-api.lua'),
    '/etc/haproxy/grafana.example.org.pem': join(folder, 'site.pem'),
    ':443': `127.0.0.1:${port}`,
    '127.0.0.1:3000': `127.0.0.1:${service}`,
    ...(by === 'routes' && { [REQUIRED]: '' }),
    ...edits,
  });
  const lua = adapt('haproxy/svc-api.lua', { '127.0.0.1:4000': `127.0.0.1:${svcApi}` });
  writeFileSync(join(folder, 'svc-api.lua'), lua);
  writeFileSync(join(folder, 'haproxy.cfg'), config);
  writeFileSync(join(folder, 'site.pem'), readFileSync(CERTIFICATE, 'utf8') + readFileSync(KEY_FILE, 'utf8'));
  return ['haproxy', '-db', '-f', join(folder, 'haproxy.cfg')];
};

const apache: Configure = (folder, port, { svcApi, edits }) => {
  const site = adapt('apache/grafana.conf', {
    '127.0.0.1:8080': `127.0.0.1:${svcApi}`,
    '*:443': `127.0.0.1:${port}`,
    '/etc/ssl/grafana.example.org.pem': CERTIFICATE,
    '/etc/ssl/private/grafana.example.org.key': KEY_FILE,
    ...edits,
  });
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
  return ['apache2', '-D', 'FOREGROUND', '-f', join(folder, 'apache.conf')];
};

/** The proxies of the examples. */
export const PROXIES = { nginx, caddy, haproxy, apache } as const;
export type ProxyName = keyof typeof PROXIES;

/** Starts a proxy, and waits until it accepts connections. */
export async function startProxy(name: ProxyName, setting: Setting): Promise<RunningProxy> {
  const [folder, port] = [tempFolder(), await freePort()];
  const [program, ...args] = PROXIES[name](folder, port, { by: 'permission', edits: {}, ...setting });
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const child = spawn(program!, args, { stdio: ['ignore', 'pipe', 'pipe'], env, cwd: folder });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`${name} has ended: ${output}`);
    return accepts(port);
  });
  return { port, output: () => output, stop: () => stop(child) };
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}
