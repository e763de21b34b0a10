import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { OrRefusal } from '../../../keys/basics/index.ts';
import type { UpstreamAddress } from '../../routes/index.ts';
import { packageFolder } from '../../../version.ts';

/** A case that a proxy is configured for. */
interface ProxyCase {
  /** The resource that requests need permissions for; undefined if the routes of `svc-api.yaml` decide. */
  readonly resource: string | undefined;
  readonly upstream: UpstreamAddress;
  /** The host that clients use. */
  readonly host: string;
  /** Command that starts the guard, such as `svc-api guard`. */
  readonly guard: string;
  /** Headers, other than Authorization, that can have a key. */
  readonly keyHeaders: readonly string[];
}

/** An upstream in the forms that proxies write. */
interface WrittenUpstream {
  /** `http://127.0.0.1:3000`. */
  readonly url: string;
  /** The same without its scheme and with its port, or with `unix:` before the path of a socket. */
  readonly address: string;
  readonly socketPath: string | undefined;
  /** The name that its certificate must have; undefined without TLS. */
  readonly tlsName: string | undefined;
}

interface Proxy {
  /** Its file in `examples`. */
  readonly file: string;
  /** Another file of that folder that it needs, and where that belongs. */
  readonly also?: { readonly file: string; readonly to: string };
  /** Passes requests to the guard, which knows the service. */
  readonly usesGuard?: boolean;
  /** Replacements in the example for this upstream. */
  readonly edits: (upstream: WrittenUpstream, service: string) => readonly (readonly [old: string, text: string])[];
}

const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt';

const PROXIES: Readonly<Record<string, Proxy>> = {
  caddy: {
    file: 'Caddyfile',
    edits: ({ url, address, socketPath, tlsName }) => [
      ['reverse_proxy 127.0.0.1:3000', `reverse_proxy ${socketPath ? `unix/${socketPath}` : tlsName ? url : address}`],
    ],
  },
  nginx: {
    file: 'grafana.conf',
    edits: ({ address, tlsName }, service) => [
      ['server 127.0.0.1:3000;', `server ${address};`],
      ...(tlsName ? [[`proxy_pass http://${service};`, nginxTls(service, tlsName)] as const] : []),
    ],
  },
  traefik: { file: 'grafana.yml', edits: () => [] },
  haproxy: {
    file: 'haproxy.cfg',
    also: { file: 'svc-api.lua', to: '/etc/haproxy/svc-api.lua' },
    edits: ({ address, tlsName }, service) => [
      [
        `server ${service} 127.0.0.1:3000`,
        `server ${service} ${address.replace('unix:', 'unix@')}${tlsName ? ` ssl verify required ca-file @system-ca sni str(${tlsName}) verifyhost ${tlsName}` : ''}`,
      ],
    ],
  },
  apache: {
    file: 'grafana.conf',
    also: { file: 'svc-api-unavailable.asis', to: '/etc/apache2/svc-api-unavailable.asis' },
    usesGuard: true,
    edits: () => [],
  },
  envoy: {
    file: 'grafana.yaml',
    edits: ({ address, socketPath, tlsName }, service) => [
      [
        `- name: ${service}\n    type: STRICT_DNS`,
        `- name: ${service}\n    type: ${socketPath ? 'STATIC' : 'STRICT_DNS'}${tlsName ? envoyTls(tlsName) : ''}`,
      ],
      [
        'socket_address: { address: 127.0.0.1, port_value: 3000 }',
        socketPath ? `pipe: { path: '${socketPath}' }` : envoyAddress(address),
      ],
    ],
  },
};

/** The names of the proxies that have an example. */
export const PROXY_NAMES: readonly string[] = Object.keys(PROXIES);

/** The configuration of a proxy. */
interface ProxyConfiguration {
  /** The text of its file. */
  readonly configuration: string;
  /** Files of the package that it needs as well, and where they belong. */
  readonly files: readonly { readonly from: string; readonly to: string }[];
  /** The command that starts the guard behind it; undefined where it asks `serve`. */
  readonly guard: string | undefined;
}

/** The example of a proxy, for the case in hand. */
export async function proxyConfiguration(
  name: string,
  { resource, upstream, host, guard, keyHeaders }: ProxyCase,
): Promise<OrRefusal<{ readonly value: ProxyConfiguration }>> {
  const { file, also, usesGuard, edits } = PROXIES[name]!;
  const written = await writeUpstream(upstream);
  if (written === undefined)
    return {
      refusal:
        'Some characters of --upstream have a meaning in the configuration. Use letters, digits, ".", "_" and "-".',
    };
  if (written.socketPath !== undefined && name === 'traefik')
    return {
      refusal: 'Traefik cannot use Unix sockets. Let the service listen at an address, such as http://127.0.0.1:3000.',
    };
  const service = resource?.toLowerCase() ?? host.split('.')[0]!;
  const names: Readonly<Record<string, string>> = {
    'grafana.example.org': host,
    'svc-api guard': guard,
    GRAFANA: resource ?? '',
    grafana: service,
  };
  const folder = join(packageFolder(), 'examples', name);
  const example = readFileSync(join(folder, file), 'utf8');
  let configuration = (resource === undefined ? withRoutes(example) : example).replaceAll(
    /grafana\.example\.org|svc-api guard|\bgrafana\b|\bGRAFANA\b/g,
    (text) => names[text]!,
  );
  for (const [old, text] of [...edits(written, service), ['http://127.0.0.1:3000', written.url] as const])
    configuration = configuration.replaceAll(old, () => text);
  const forEachKey = (header: RegExp) => (line: string) =>
    [line, ...keyHeaders.map((other) => line.replace(header, () => other))].join('');
  configuration = configuration
    // The headers that Envoy sends to svc-api, besides `authorization`.
    .replace(/^ +- exact: upgrade\n/m, forEachKey(/upgrade/))
    // The line that removes the key from the request to the service.
    .replace(/^.*\bauthorization\b.*\n/im, forEachKey(/authorization/i));
  return {
    value: {
      configuration,
      files: also === undefined ? [] : [{ from: join(folder, also.file), to: also.to }],
      guard: usesGuard
        ? `${guard} ${written.url}${resource === undefined ? '' : ` --resource ${resource}`}`
        : undefined,
    },
  };
}

/** An example in which the routes of `svc-api.yaml` decide. Without its `?`, Caddy would append the client's query. */
function withRoutes(example: string): string {
  return example
    .replaceAll(/^[\t ]*# .*\broutes (?:of|in) svc-api\.yaml decide.*\n/gm, '')
    .replaceAll(/if their key has(?: |\n# )the permission on GRAFANA/g, 'if the routes of svc-api.yaml allow it')
    .replaceAll('/auth/caddy?resource=GRAFANA', '/auth/caddy?')
    .replaceAll(/\?resource=GRAFANA|\/resource=GRAFANA| --resource GRAFANA/g, '');
}

/** @returns undefined for one whose characters could mean something else in a configuration */
async function writeUpstream(upstream: UpstreamAddress): Promise<WrittenUpstream | undefined> {
  if ('socketPath' in upstream) {
    const { socketPath } = upstream;
    const isPlain = /^[\w./-]+$/.test(socketPath);
    return isPlain
      ? { url: `http+unix://${socketPath}`, address: `unix:${socketPath}`, socketPath, tlsName: undefined }
      : undefined;
  }
  const { formatHost } = await import('../../routes/index.ts');
  const { protocol, host, port } = upstream;
  if (isIP(host) === 0 && !/^[\w.-]+$/.test(host)) return undefined;
  return {
    url: `${protocol}//${formatHost(upstream)}`,
    address: `${isIP(host) === 6 ? `[${host}]` : host}:${port}`,
    socketPath: undefined,
    tlsName: protocol === 'https:' ? host : undefined,
  };
}

function nginxTls(service: string, name: string): string {
  const directives = [
    `proxy_pass https://${service};`,
    'proxy_ssl_server_name on;',
    `proxy_ssl_name ${name};`,
    'proxy_ssl_verify on;',
    'proxy_ssl_verify_depth 4;',
    `proxy_ssl_trusted_certificate ${AUTHORITIES};`,
  ];
  return directives.join('\n        ');
}

function envoyAddress(address: string): string {
  const [, host, port] = /^\[?(.*?)\]?:(\d+)$/.exec(address)!;
  return `socket_address: { address: '${host}', port_value: ${port} }`;
}

function envoyTls(name: string): string {
  return `
    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        '@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        sni: '${name}'
        common_tls_context:
          validation_context:
            trusted_ca: { filename: ${AUTHORITIES} }
            match_typed_subject_alt_names: [{ san_type: ${isIP(name) === 0 ? 'DNS' : 'IP_ADDRESS'}, matcher: { exact: '${name}' } }]`;
}
