import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { Metrics } from '../../src/features/telemetry/metrics.ts';
import { requestLog } from '../../src/features/telemetry/request-log.ts';
import { startSdk, Traces } from '../../src/features/telemetry/traces.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { NO_LOG } from '../../src/log.ts';
import { startGuarded } from '../features/guard/support/guard.ts';
import { PARENT, startTraces, TRACE } from '../features/telemetry/support/traces.ts';
import { type Family, parseExposition, valueOf } from '../support/exposition.ts';
import { collectingLog, withoutRequestId } from '../support/log.ts';
import { startOtlpReceiver } from '../support/otlp.ts';
import { until } from '../support/until.ts';

/** The metrics once no request is in flight. */
async function metricsAtRest(metrics: Metrics): Promise<Map<string, Family>> {
  let found: Map<string, Family>;
  const scrape = async () => (found = parseExposition(await metrics.text()));
  await until(async () => valueOf(await scrape(), 'svc_api_requests_in_flight') === 0);
  return found!;
}

describe('metrics of a guard', () => {
  it('count forwarded requests by upstream and status, and report which upstream fails', async () => {
    const metrics = new Metrics();
    let status = 200;
    const guarded = await startGuarded((_, outgoing) => outgoing.writeHead(status).end(), {
      watchers: [metrics.requests],
      named: 'wiki',
    });
    const ask = () => fetch(guarded.url, { headers: { authorization: `Bearer ${guarded.secret}` } });
    await ask();
    await fetch(guarded.url);
    status = 502;
    await ask();
    const failing = await metricsAtRest(metrics);
    status = 404;
    await ask();
    const families = await metricsAtRest(metrics);
    await guarded.stop();
    const isFailing = [failing, families].map((each) =>
      valueOf(each, 'svc_api_upstream_failing', { upstream: 'wiki' }),
    );
    assert.deepEqual(isFailing, [1, 0]);
    const requests = (code: string) => valueOf(families, 'svc_api_upstream_requests_total', { upstream: 'wiki', code });
    assert.deepEqual(['200', '502', '404', '401'].map(requests), [1, 1, 1, undefined]);
  });
});

describe('the request log of a guard', () => {
  it('has a line for each request, by its id, which the service gets as well', async () => {
    const { log, lines } = collectingLog();
    const ids: unknown[] = [];
    const service = await startGuarded(
      (incoming, outgoing) => {
        ids.push(incoming.headers['x-request-id']);
        outgoing.writeHead(418).end();
      },
      { healthPath: '/health', watchers: [requestLog(log)] },
    );
    const [key] = (await service.keys.list({}, OPERATOR)).keys;
    await fetch(`${service.url}/tea?key=${service.secret}`, { headers: { authorization: `Bearer ${service.secret}` } });
    await fetch(`${service.url}/tea`);
    await fetch(`${service.url}/health`);
    await until(() => lines.length >= 3);
    const [passed, ...others] = lines.map(({ fields }) => fields as Record<string, unknown>);
    const { durationMs: _, ...steady } = withoutRequestId(passed!) as Record<string, unknown>;
    assert.deepEqual(steady, { endpoint: 'guard', method: 'GET', status: 418, keyId: key!.id, address: '127.0.0.1' });
    assert.deepEqual(ids, [passed!['requestId']]);
    assert.deepEqual(
      others.map(({ endpoint, status }) => [endpoint, status]),
      [
        ['guard', 401],
        ['health', 200],
      ],
    );
    await service.stop();
  });
});

describe('a guard that does not trace a request', () => {
  it('tells the service not to trace it either, and leaves the headers of a caller that says so', async () => {
    const receiver = await startOtlpReceiver();
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_TRACES_SAMPLER: 'always_off' };
    const traces = new Traces((await startSdk(env, NO_LOG))!);
    const seen: IncomingHttpHeaders[] = [];
    const service = await startGuarded(
      (incoming, outgoing) => {
        seen.push(incoming.headers);
        outgoing.end();
      },
      { watchers: [traces] },
    );
    const authorization = service.authorization.split(': ')[1]!;
    const ask = async (headers: Record<string, string>) => {
      await fetch(`${service.url}/x`, { headers: { ...headers, authorization, baggage: 'user=1' } });
      const { traceparent, tracestate, baggage } = seen.at(-1)!;
      assert.equal(baggage, 'user=1');
      return [traceparent, tracestate];
    };
    const [made, none] = await ask({ tracestate: 'made=up' });
    assert.match(String(made), /^00-[\da-f]{32}-[\da-f]{16}-00$/);
    assert.equal(none, undefined);
    const id = `00-${TRACE}-${PARENT}`;
    assert.deepEqual(await ask({ traceparent: `${id}-01`, tracestate: 'a=1' }), [`${id}-00`, 'a=1']);
    assert.deepEqual(await ask({ traceparent: `${id}-00`, tracestate: 'a=1' }), [`${id}-00`, 'a=1']);
    const [other] = await ask({ traceparent: `${id}-01-x`, tracestate: 'a=1' });
    assert.match(String(other), /^00-[\da-f]{32}-[\da-f]{16}-00$/);
    assert.ok(!String(other).includes(TRACE));
    await service.stop();
    await traces.stop();
    assert.deepEqual(receiver.spans, []);
    receiver.stop();
  });
});

describe('traces of a guard', () => {
  it('go on behind a guard, with its span in between', async () => {
    const { receiver, traces } = await startTraces();
    const seen: IncomingHttpHeaders[] = [];
    const service = await startGuarded(
      (incoming, outgoing) => {
        seen.push(incoming.headers);
        outgoing.writeHead(503).end();
      },
      { watchers: [traces] },
    );
    const headers = { authorization: service.authorization.split(': ')[1]!, traceparent: `00-${TRACE}-${PARENT}-01` };
    await fetch(`${service.url}/x`, { headers: { ...headers, tracestate: 'vendor=1' } });
    await service.stop();
    await traces.stop();
    const span = receiver.spans.find(({ kind }) => kind === 2)!;
    assert.deepEqual([span.name, span.traceId, span.parentSpanId, span.status], ['GET guard', TRACE, PARENT, 2]);
    assert.equal(seen[0]!['traceparent'], `00-${TRACE}-${span.spanId}-01`);
    assert.equal(seen[0]!['tracestate'], 'vendor=1');
    assert.equal(span.attributes['error.type'], '503');
    receiver.stop();
  });
});
