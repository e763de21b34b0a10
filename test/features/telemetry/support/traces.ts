import { startSdk, Traces } from '../../../../src/features/telemetry/traces.ts';
import { collectingLog } from '../../../support/log.ts';
import { startOtlpReceiver } from '../../../support/otlp.ts';

/** The ids of a trace and of a span in it. */
export const TRACE = '0af7651916cd43dd8448eb211c80319c';
export const PARENT = 'b7ad6b7169203331';

/** A receiver, and traces that are sent to it. */
export async function startTraces(env: NodeJS.ProcessEnv = {}) {
  const receiver = await startOtlpReceiver();
  const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_SERVICE_NAME: 'keys of ours', ...env };
  const { log, lines } = collectingLog();
  // The exporter reads these variables itself.
  Object.assign(process.env, variables);
  const sdk = await startSdk(process.env, log);
  for (const name of Object.keys(variables)) delete process.env[name];
  return { receiver, lines, traces: new Traces(sdk!) };
}
