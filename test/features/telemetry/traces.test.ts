import assert from 'node:assert/strict';
import { createApp } from '../../../src/service/create-app.ts';
import { listen } from '../../../src/http/listen.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { startSdk } from '../../../src/features/telemetry/traces.ts';
import { openTestKeys } from '../../support/keys.ts';
import { collectingLog } from '../../support/log.ts';
import { rawPost, sendRaw } from '../../support/raw-http.ts';
import { until } from '../../support/until.ts';
import { PARENT, startTraces, TRACE } from './support/traces.ts';

describe('traces', () => {
  it('have a span for each request, in the trace of its caller, with its key and operation and no secret', async () => {
    const { receiver, traces, lines } = await startTraces();
    const { keys, store } = await openTestKeys({ asServer: true });
    const { key: secret, apiKey: key } = await keys.create({ name: 'Läufer', roles: ['GUEST'] }, OPERATOR);
    const app = await createApp({ keys });
    const server = await listen({ app, host: '127.0.0.1', port: 0, watchers: [traces] });
    const send = (parent: string, body: string, ...more: string[]) =>
      sendRaw(
        server.url,
        rawPost(
          ['Content-Type: application/json', `Authorization: Bearer ${secret}`, `traceparent: ${parent}`, ...more],
          body,
        ),
      );
    const { headers } = await send(`00-${TRACE}-${PARENT}-01`, `{"query":"query Q_${secret} { me { name } }"}`);
    const hostile = [
      `00-${TRACE}-${PARENT}-01-x`,
      `00-${'0'.repeat(32)}-${PARENT}-01`,
      'x'.repeat(9000),
      `ff-${TRACE}-${PARENT}-01`,
    ];
    for (const parent of hostile) await send(parent, '{"query":"{ online }"}', `tracestate: ${'a=b,'.repeat(1000)}`);
    await sendRaw(server.url, `GET /${secret}?${secret} HTTP/1.1\r\nHost: a\r\n\r\n`);
    await server.stop();
    await traces.stop();
    const spans = receiver.spans;
    const span = spans.find(({ traceId, kind }) => traceId === TRACE && kind === 2)!;
    assert.deepEqual([span.name, span.parentSpanId, span.status], ['POST /graphql', PARENT, 0]);
    assert.deepEqual(span.attributes, {
      'svc_api.endpoint': 'graphql',
      'http.request.method': 'POST',
      'http.route': '/graphql',
      'svc_api.request.id': headers.get('x-request-id'),
      'http.response.status_code': 200,
      'client.address': '127.0.0.1',
      'svc_api.key.id': key.id,
      'graphql.operation.type': 'query',
      'graphql.operation.name': 'Q_[redacted]',
    });
    assert.ok(span.end > span.start && Number(span.end - span.start) < 60e9);
    assert.ok(Math.abs(Number(span.start / 1_000_000n) - Date.now()) < 600_000);
    const asked = spans.find(({ parentSpanId }) => parentSpanId === span.spanId);
    assert.deepEqual([asked!.name, asked!.traceId], ['store find key', TRACE]);
    assert.ok(asked!.start >= span.start && asked!.end <= span.end);
    const roots = spans.filter(({ parentSpanId }) => parentSpanId === '');
    assert.equal(roots.length, hostile.length + 1, 'what is no traceparent begins a trace of its own');
    assert.equal(span.resource['service.name'], 'keys of ours');
    assert.ok(
      !JSON.stringify(spans, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value)).includes(secret),
    );
    assert.deepEqual(receiver.requests[0], { url: '/v1/traces', type: 'application/x-protobuf' });
    assert.deepEqual(lines, []);
    receiver.stop();
    await store.close();
  });

  it('are as many as the sampler lets pass', async () => {
    const { receiver, traces } = await startTraces({ OTEL_TRACES_SAMPLER: 'always_off' });
    const { keys, store } = await openTestKeys();
    const server = await listen({ app: await createApp({ keys }), host: '127.0.0.1', port: 0, watchers: [traces] });
    await fetch(`${server.url}/healthz`, { headers: { traceparent: `00-${TRACE}-${PARENT}-01` } });
    await server.stop();
    await traces.stop();
    assert.deepEqual(receiver.spans, []);
    receiver.stop();
    await store.close();
  });

  it('without a receiver are one line in the log, and delay nothing', async () => {
    const { receiver, traces, lines } = await startTraces({
      OTEL_BSP_SCHEDULE_DELAY: '10',
      OTEL_EXPORTER_OTLP_TIMEOUT: '200',
    });
    receiver.stop();
    const { keys, store } = await openTestKeys();
    const server = await listen({ app: await createApp({ keys }), host: '127.0.0.1', port: 0, watchers: [traces] });
    for (let time = 0; time < 5; time += 1) assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
    await until(() => lines.length > 0);
    await server.stop();
    await traces.stop();
    assert.deepEqual([...new Set(lines.map(({ message }) => message))], ['traces were not sent']);
    await store.close();
  });

  it('are not made by another protocol than http/protobuf, which is logged', async () => {
    const { log, lines } = collectingLog();
    assert.equal(await startSdk({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, log), undefined);
    assert.deepEqual([lines[0]!.level, lines[0]!.fields], ['error', { protocol: 'grpc' }]);
  });
});
