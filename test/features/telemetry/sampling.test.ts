import assert from 'node:assert/strict';
import { ROOT_CONTEXT, SpanKind, trace, TraceFlags } from '@opentelemetry/api';
import * as sdk from '@opentelemetry/sdk-trace';
import { type Sampler, SamplingDecision } from '@opentelemetry/sdk-trace';
import { type Log, NO_LOG } from '../../../src/log.ts';
import { readTraceparent, samplerOf, startSdk, Traces } from '../../../src/features/telemetry/traces.ts';
import { collectingLog } from '../../support/log.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';

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
  const ask = (sampler: Sampler, traceFlags: TraceFlags | undefined) => {
    const parent = { traceId: TRACE, spanId: PARENT, isRemote: true };
    const context =
      traceFlags === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, { ...parent, traceFlags });
    return sampler.shouldSample(context, TRACE, 'x', SpanKind.SERVER, {}, []).decision !== SamplingDecision.NOT_RECORD;
  };
  const decisions = (env: NodeJS.ProcessEnv, log: Log = NO_LOG) => {
    const sampler = samplerOf(sdk, env, log);
    return [undefined, TraceFlags.SAMPLED, TraceFlags.NONE].map((flags) => ask(sampler, flags));
  };

  it('is what the sampler of that name says, without a caller, with one that is traced, and with one that is not', () => {
    for (const [sampler, ratio, ...expected] of [
      [undefined, undefined, true, true, false],
      ['', undefined, true, true, false],
      ['always_on', undefined, true, true, true],
      ['always_off', undefined, false, false, false],
      ['traceidratio', undefined, true, true, true],
      ['traceidratio', '0', false, false, false],
      ['parentbased_always_on', undefined, true, true, false],
      ['parentbased_always_off', undefined, false, true, false],
      ['parentbased_traceidratio', '1', true, true, false],
      ['parentbased_traceidratio', '0', false, true, false],
    ] as const)
      assert.deepEqual(
        decisions({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: ratio }),
        expected,
        `${sampler} ${ratio}`,
      );
  });

  it('is the ratio of them, by the ids of their traces', () => {
    const env = { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.3' };
    const sampler = samplerOf(sdk, env, NO_LOG);
    let taken = 0;
    for (let time = 0; time < 1000; time += 1) {
      const traceId = `${Math.round((time / 1000) * 2 ** 32)
        .toString(16)
        .padStart(8, '0')}${'0'.repeat(24)}`;
      const { decision } = sampler.shouldSample(ROOT_CONTEXT, traceId, 'x', SpanKind.SERVER, {}, []);
      taken += Number(decision !== SamplingDecision.NOT_RECORD);
    }
    assert.ok(Math.abs(taken - 300) <= 1, `${taken}`);
  });

  it('is all of them where a variable is not known, which is logged', () => {
    const { log, lines } = collectingLog();
    assert.deepEqual(decisions({ OTEL_TRACES_SAMPLER: 'sometimes' }, log), [true, true, false]);
    const ratio = { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '1 %' };
    assert.deepEqual(decisions(ratio, log), [true, true, true]);
    assert.deepEqual(
      lines.map(({ level, fields }) => [level, fields]),
      [
        ['warn', { sampler: 'sometimes' }],
        ['warn', { ratio: '1 %' }],
      ],
    );
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
