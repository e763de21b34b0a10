import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { ROOT_CONTEXT } from '@opentelemetry/api';
import { SamplingDecision, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace';
import { NO_LOG } from '../../src/log.ts';
import { readTraceparent, Sampling, startSdk, Traces } from '../../src/telemetry/traces.ts';
import { startGuarded } from '../support/guard.ts';
import { collectingLog } from '../support/log.ts';
import { startOtlpReceiver } from '../support/otlp.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const samplingOf = (sampler: string, ratio?: string) =>
  new Sampling({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: ratio }, NO_LOG);

describe('a traceparent', () => {
  it('is read as W3C Trace Context has it, in this version and in later ones', () => {
    const parent = { traceId: TRACE, spanId: PARENT, isSampled: true };
    const head = `${TRACE}-${PARENT}`;
    for (const good of [`00-${head}-01`, `00-${head}-03`, `cc-${head}-01`, `cc-${head}-01-${'x'.repeat(500)}`])
      assert.deepEqual(readTraceparent(good), parent, good);
    assert.equal(readTraceparent(`00-${head}-02`)!.isSampled, false);
    for (const bad of [
      undefined,
      '',
      `00-${head}-01-x`,
      `00-${head}-01-`,
      `cc-${head}-01x`,
      `ff-${head}-01`,
      `00-${head}-1`,
      `00-${head}-0g`,
      `00-${head.toUpperCase()}-01`,
      `00-${'0'.repeat(32)}-${PARENT}-01`,
      `00-${TRACE}-${'0'.repeat(16)}-01`,
      `00-${head}-01, 00-${head}-01`,
      ` 00-${head}-01`,
      `00-${head}-01\n`,
    ])
      assert.equal(readTraceparent(bad), undefined, bad);
  });
});

describe('which requests are traced', () => {
  const caller = (isSampled: boolean) => ({ traceId: TRACE, spanId: PARENT, isSampled });

  it('is what the sampler of that name would say', () => {
    for (const [sampler, root, sampled, unsampled] of [
      ['always_on', true, true, true],
      ['always_off', false, false, false],
      ['parentbased_always_on', true, true, false],
      ['parentbased_always_off', false, true, false],
    ] as const) {
      const sampling = samplingOf(sampler);
      const found = [undefined, caller(true), caller(false)].map((parent) => sampling.takes(parent));
      assert.deepEqual(found, [root, sampled, unsampled], sampler);
    }
  });

  it('is the ratio of them, by their ids as other services by the same sampler decide', () => {
    for (const ratio of [0, 0.01, 0.3, 1]) {
      const sampling = samplingOf('traceidratio', String(ratio));
      const theirs = new TraceIdRatioBasedSampler(ratio);
      const isTheirs = (traceId: string) =>
        theirs.shouldSample(ROOT_CONTEXT, traceId).decision !== SamplingDecision.NOT_RECORD;
      let taken = 0;
      for (let time = 0; time < 20_000; time += 1) {
        const isTaken = sampling.takes(undefined);
        const traceId = sampling.generateTraceId();
        assert.match(traceId, /^[\da-f]{32}$/);
        if (isTaken) assert.ok(isTheirs(traceId), traceId);
        taken += Number(isTaken);
        assert.equal(sampling.takes({ traceId, spanId: PARENT, isSampled: time % 2 === 0 }), isTheirs(traceId));
        assert.match(sampling.generateSpanId(), /^[\da-f]{16}$/);
      }
      assert.ok(Math.abs(taken / 20_000 - ratio) < 0.02, `${taken}`);
    }
  });

  it('is all of them where a variable is not known, which is logged', () => {
    const { log, lines } = collectingLog();
    const wrong = { OTEL_TRACES_SAMPLER: 'sometimes' };
    assert.deepEqual(new Sampling(wrong, log).takes(undefined), true);
    const ratio = { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '1 %' };
    assert.deepEqual(new Sampling(ratio, log).takes(undefined), true);
    assert.deepEqual(
      lines.map(({ level, fields }) => [level, fields]),
      [
        ['warn', { sampler: 'sometimes' }],
        ['warn', { ratio: '1 %' }],
      ],
    );
  });
});

describe('a guard that does not trace a request', () => {
  it('tells the service not to trace it either, and leaves a caller that says so its headers', async () => {
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

describe('tracing that is started twice in a process', () => {
  it('logs nothing about that', async () => {
    const { log, lines } = collectingLog();
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' };
    for (let time = 0; time < 2; time += 1) await new Traces((await startSdk(env, log))!).stop();
    assert.deepEqual(lines, []);
  });
});
