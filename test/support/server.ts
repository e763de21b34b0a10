import { createApp, type CreateAppOptions } from '../../src/service/create-app.ts';
import type { SchemaExtension } from '../../src/graphql/extension.ts';
import { listen } from '../../src/http/listen.ts';
import type { KeysService } from '../../src/keys/service/service.ts';
import type { Limited } from '../../src/limits/limiter.ts';
import { type Log, NO_LOG } from '../../src/log.ts';
import { openTestKeys, type TestKeys } from './keys.ts';

export interface TestServer {
  /** The URL of the server, without a path. */
  url: string;
  stop(): Promise<void>;
}

/** The rules over a new store, and a server over them. */
export interface TestService extends TestKeys {
  /** The server's URL, without a path. */
  url: string;
  /** Stops the server and closes the store. */
  stop(): Promise<void>;
}

export interface GraphQLReply {
  status: number;
  headers: Headers;
  body: {
    data?: Record<string, unknown> | null;
    errors?: { message: string; path?: string[]; extensions: Record<string, unknown> }[];
  };
}

/** A real server on a free loopback port. */
export async function startServer(
  keys: KeysService & Limited,
  options: Omit<CreateAppOptions, 'keys'> = {},
): Promise<TestServer> {
  const app = await createApp({ keys, log: NO_LOG, ...options });
  const server = await listen({ app, host: '127.0.0.1', port: 0 });
  return { url: server.url, stop: () => server.stop(0) };
}

/** A store, the rules over it, and a server on a free loopback port. */
export async function startTestService({
  extensions = [],
  log = NO_LOG,
  app = {},
  ...options
}: Parameters<typeof openTestKeys>[0] & {
  extensions?: SchemaExtension[];
  log?: Log;
  app?: Omit<CreateAppOptions, 'keys' | 'extensions' | 'log' | 'replaces'>;
} = {}): Promise<TestService> {
  const test = await openTestKeys({ asServer: true, ...options });
  const server = await startServer(test.keys, { extensions, log, ...app });
  const stop = async () => {
    await server.stop();
    await test.store.close();
  };
  return { ...test, url: server.url, stop };
}

/** Sends a GraphQL request by fetch. */
export async function query(
  url: string,
  secret: string | undefined,
  document: string,
  variables?: Record<string, unknown>,
  operationName?: string,
): Promise<GraphQLReply> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: {
      ...(secret !== undefined && { authorization: `Bearer ${secret}` }),
      'content-type': 'application/json',
    },
    body: JSON.stringify({ query: document, variables, operationName }),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as GraphQLReply['body'] };
}
