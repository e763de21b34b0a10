import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { bearerAuth } from '../../../src/express.ts';
import { createApp, listen, OPERATOR, startTelemetry } from '../../../src/index.ts';
import type { Telemetry } from '../../../src/features/telemetry/start-telemetry.ts';
import { parseExposition, valueOf } from '../../support/exposition.ts';
import { openTestKeys, type TestKeys } from '../../support/keys.ts';
import { collectingLog } from '../../support/log.ts';
import { startOtlpReceiver } from '../../support/otlp.ts';
import { query } from '../../support/server.ts';
import { until } from '../../support/until.ts';

type Fields = Record<string, unknown>;

/** Other tests run in this process. */
const OPTIONS = { overrideGlobalObjects: false };

describe('telemetry of the library', () => {
  const { log, lines } = collectingLog();
  let telemetry: Telemetry;
  let test: TestKeys;
  let secret: string;
  let keyId: string;
  const stops: (() => unknown)[] = [];
  beforeEach(async () => {
    lines.length = 0;
    telemetry = await startTelemetry({ requestLog: true, metrics: true, log, base: '/keys/' });
    test = await openTestKeys({ asServer: true, timer: telemetry.storeTimer });
    telemetry.measure(test.keys);
    const created = await test.keys.create({ name: 'Key', roles: ['ADMIN'] }, OPERATOR);
    [secret, keyId] = [created.key, created.apiKey.id];
  });
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
    await telemetry.stop();
    await test.store.close();
  });
  /** Serves with node:http, and returns the URL. */
  const serve = async (listener: RequestListener) => {
    const server = createServer(listener);
    stops.push(() => server.close() && server.closeAllConnections());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  const service = async () => createApp({ keys: test.keys });
  const taken = async (count: number) => {
    await until(() => lines.length >= count);
    return lines.splice(0).map(({ fields }) => fields as Fields);
  };

  const HOSTS: Readonly<Record<string, () => Promise<string>>> = {
    async Hono() {
      const host = new Hono<{ Bindings: HttpBindings }>();
      host.use(async (c, next) => {
        telemetry.watch(c.env.incoming, c.env.outgoing);
        await next();
      });
      host.route('/keys', await service());
      return serve(getRequestListener(host.fetch, OPTIONS));
    },
    async Express() {
      const host = express();
      host.use((request, response, next) => {
        telemetry.watch(request, response);
        next();
      });
      const app = new Hono().route('/keys', await service());
      const listener = getRequestListener(app.fetch, OPTIONS);
      host.all('/keys/{*rest}', (request, response) => void listener(request, response));
      return serve(host);
    },
    async Fastify() {
      const host = fastify();
      host.addHook('onRequest', async (request, reply) => telemetry.watch(request.raw, reply.raw));
      const app = new Hono().route('/keys', await service());
      const listener = getRequestListener(app.fetch, OPTIONS);
      host.removeAllContentTypeParsers();
      host.addContentTypeParser('*', (_request, _payload, done) => done(null));
      host.all('/keys/*', (request, reply) => {
        reply.hijack();
        void listener(request.raw, reply.raw);
      });
      stops.push(() => host.close());
      return host.listen({ port: 0, host: '127.0.0.1' });
    },
    async 'node:http'() {
      const app = new Hono().route('/keys', await service());
      const listener = getRequestListener(app.fetch, OPTIONS);
      return serve((incoming, outgoing) => {
        telemetry.watch(incoming, outgoing);
        void listener(incoming, outgoing);
      });
    },
  };
  for (const [name, host] of Object.entries(HOSTS))
    it(`has a line, metrics and an id for each request to a service that is mounted in ${name}`, async () => {
      const url = await host();
      const answer = await query(`${url}/keys`, secret, 'query Who { me { name } }');
      assert.equal(answer.status, 200);
      assert.equal((await fetch(`${url}/keys/nothing`)).status, 404);
      assert.equal((await fetch(`${url}/keysgraphql`)).status, 404);
      const [line, ...others] = await taken(3);
      const { requestId, durationMs, ...fields } = line!;
      assert.deepEqual(fields, {
        endpoint: 'graphql',
        method: 'POST',
        status: 200,
        keyId,
        operation: { type: 'query', name: 'Who' },
        address: '127.0.0.1',
      });
      assert.ok(Number(durationMs) > 0);
      assert.equal(answer.headers.get('x-request-id'), requestId);
      assert.deepEqual(
        others.map(({ endpoint, status }) => [endpoint, status]),
        [
          ['other', 404],
          ['other', 404],
        ],
      );
      const { type, text } = await telemetry.exposition();
      assert.match(type, /^text\/plain; version=0\.0\.4/);
      const families = parseExposition(text);
      assert.equal(valueOf(families, 'svc_api_requests_total', { endpoint: 'graphql', code: '200' }), 1);
      assert.equal(valueOf(families, 'svc_api_keys', { status: 'active' }), 1);
      assert.ok(valueOf(families, 'svc_api_store_duration_seconds_count', { operation: 'write' })! > 0);
    });

  it('has the key of a request that the middleware accepts, and a request once', async () => {
    const auth = bearerAuth({ keys: test.keys });
    const url = await serve((incoming, outgoing) => {
      telemetry.watch(incoming, outgoing);
      telemetry.watch(incoming, outgoing);
      auth(incoming, outgoing, () => outgoing.writeHead(204).end());
    });
    const headers = { authorization: `Bearer ${secret}`, 'x-request-id': 'from-a-proxy' };
    const { headers: answered } = await fetch(`${url}/mine`, { headers });
    assert.equal(answered.get('x-request-id'), 'from-a-proxy');
    const [line, ...others] = await taken(1);
    assert.deepEqual([line!['keyId'], line!['status'], line!['requestId'], others], [keyId, 204, 'from-a-proxy', []]);
  });

  it('is given each request by listen, and traces if enabled', async () => {
    const receiver = await startOtlpReceiver();
    process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = receiver.url;
    const traced = await startTelemetry({ traces: true, log });
    delete process.env['OTEL_EXPORTER_OTLP_ENDPOINT'];
    const watchers = [...telemetry.watchers, ...traced.watchers];
    const server = await listen({ app: await service(), host: '127.0.0.1', port: 0, watchers });
    assert.equal((await query(server.url, secret, '{ me { name } }')).status, 200);
    const [line] = await taken(1);
    assert.equal(line!['keyId'], keyId);
    await server.stop();
    await traced.stop();
    assert.deepEqual(
      receiver.spans.filter(({ kind }) => kind === 2).map(({ name }) => name),
      ['POST /graphql'],
    );
    receiver.stop();
  });

  it('leaves metrics of the process to a host that has its own, and has none unless enabled', async () => {
    const own = await startTelemetry({ metrics: { process: false } });
    const names = [...parseExposition((await own.exposition()).text).keys()];
    assert.ok(names.includes('svc_api_requests_total'));
    assert.deepEqual(
      names.filter((name) => !name.startsWith('svc_api_')),
      [],
    );
    const none = await startTelemetry({});
    assert.deepEqual([none.watchers, none.storeTimer, (await none.exposition()).text], [[], undefined, '']);
  });

  it('refuses an option that is misspelt, with the one that was meant', async () => {
    await assert.rejects(startTelemetry({ metric: true } as never), {
      code: 'OPTION_INVALID',
      message: 'startTelemetry: "metric" is not an option. Did you mean metrics?',
    });
  });

  it('has neither watchers nor a timer where nothing is asked for, and hosts pass these on', async () => {
    const none = await startTelemetry({});
    assert.deepEqual([none.watchers, none.storeTimer], [[], undefined]);
    await none.stop();
  });
});
