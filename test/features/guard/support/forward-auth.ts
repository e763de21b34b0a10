import { createApp } from '../../../../src/service/create-app.ts';
import type { Config } from '../../../../src/config/config.ts';
import { defaultConfig } from '../../../../src/config/default-config.ts';
import { listen } from '../../../../src/http/listen.ts';
import { Networks } from '../../../../src/keys/basics/networks.ts';
import type { Allow, Route } from '../../../../src/features/routes/router.ts';
import { openTestKeys, type TestKeys } from '../../../support/keys.ts';
import { collectingLog, type LogLine } from '../../../support/log.ts';
import { type RawReply, sendRaw } from '../../../support/raw-http.ts';

/** The site behind the proxies. */
export const SITE = 'grafana.example.org';

/** A client's request, as its proxy received it. */
export interface Asked {
  method?: string;
  host?: string;
  target?: string;
}

/** A request to svc-api. */
export interface Asking {
  method?: string;
  target: string;
  /** Header lines. */
  headers: readonly string[];
}

/** A server for proxies to ask. */
export interface AskedServer extends TestKeys {
  url: string;
  /** The lines of its log. */
  lines: LogLine[];
  send(asking: Asking): Promise<RawReply>;
  stop(): Promise<void>;
}

/** The headers with which each proxy asks, besides those that it forwards from the client. */
export const ASKING = {
  nginx: ({ method = 'GET', host = SITE, target = '/' }: Asked, query = ''): Asking => ({
    target: `/auth/nginx${query}`,
    headers: [
      `X-Original-Method: ${method}`,
      `X-Original-URI: ${target}`,
      `X-Forwarded-Host: ${host}`,
      'X-Forwarded-For: 203.0.113.7',
      'Host: svc_api',
    ],
  }),
  caddy: ({ method = 'GET', host = SITE, target = '/' }: Asked, query = ''): Asking => ({
    target: `/auth/caddy${query}`,
    headers: [
      `Host: ${host}`,
      'X-Forwarded-For: 203.0.113.7',
      `X-Forwarded-Host: ${host}`,
      `X-Forwarded-Method: ${method}`,
      'X-Forwarded-Proto: https',
      `X-Forwarded-Uri: ${target}`,
      'Accept-Encoding: gzip',
    ],
  }),
  traefik: ({ method = 'GET', host = SITE, target = '/' }: Asked, query = ''): Asking => ({
    target: `/auth/traefik${query}`,
    headers: [
      'Host: 127.0.0.1:4000',
      'User-Agent: curl/8.5.0',
      'X-Forwarded-For: 203.0.113.7',
      `X-Forwarded-Host: ${host}`,
      `X-Forwarded-Method: ${method}`,
      'X-Forwarded-Port: 443',
      'X-Forwarded-Proto: https',
      'X-Forwarded-Server: traefik',
      `X-Forwarded-Uri: ${target}`,
      'X-Real-Ip: 203.0.113.7',
      'Accept-Encoding: gzip',
    ],
  }),
  haproxy: ({ method = 'GET', host = SITE, target = '/' }: Asked, query = ''): Asking => ({
    target: `/auth/haproxy${query}`,
    headers: [
      `x-forwarded-uri: ${target}`,
      `x-forwarded-method: ${method}`,
      'x-forwarded-for: 203.0.113.7',
      'x-forwarded-proto: https',
      `x-forwarded-host: ${host}`,
      'host: 127.0.0.1:4000',
      'accept: */*',
      'user-agent: HAProxy',
    ],
  }),
  envoy: ({ method = 'GET', host = SITE, target = '/' }: Asked, query = ''): Asking => ({
    method,
    target: `/auth${query === '' ? '' : `/${query.slice(1)}`}/envoy${target}`,
    headers: [
      `host: ${host}`,
      'x-forwarded-for: 198.51.100.1, 203.0.113.7',
      'x-envoy-external-address: 203.0.113.7',
      'x-envoy-expected-rq-timeout-ms: 200',
      'content-length: 0',
    ],
  }),
} as const;
export type Proxy = keyof typeof ASKING;
export const ALL_PROXIES = Object.keys(ASKING) as Proxy[];

/** A route of the site. */
export function routeTo(path: string, allow: Allow, more: Partial<Route> = {}): Route {
  return { host: SITE, path, allow, preflightOpen: false, ...more };
}

/** Starts a server with the resource GRAFANA on a free loopback port. */
export async function startAskedServer({
  config = {},
  trust,
  ...options
}: Parameters<typeof openTestKeys>[0] & {
  config?: Partial<Config>;
  trust?: readonly string[];
} = {}): Promise<AskedServer> {
  const test = await openTestKeys({ asServer: true, resources: ['GRAFANA'], ...options });
  const { log, lines } = collectingLog();
  const trusted = trust ? { trust: new Networks(trust) } : {};
  const app = await createApp({ keys: test.keys, log, config: { ...defaultConfig(), ...trusted, ...config } });
  const server = await listen({ app, host: '127.0.0.1', port: 0 });
  return {
    ...test,
    url: server.url,
    lines,
    send: ({ method = 'GET', target, headers }) =>
      sendRaw(server.url, Buffer.from([`${method} ${target} HTTP/1.1`, ...headers, '\r\n'].join('\r\n'), 'latin1')),
    async stop() {
      await server.stop(0);
      await test.store.close();
    },
  };
}

/** A proxy's request with more headers from the client. */
export function withHeaders({ headers, ...asking }: Asking, ...more: readonly string[]): Asking {
  return { ...asking, headers: [...headers, ...more] };
}

/** The header line with a key. */
export const keyLine = (secret: string): string => `Authorization: Bearer ${secret}`;
