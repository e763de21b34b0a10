import { printable } from '../../keys/text.ts';
import { CliError } from '../errors.ts';
import { type Given, readPort, set, typed } from './address.ts';

/** What operators see of a running server, beside its log. */
export interface TelemetryOptions {
  /** Whether there is a line in the log for each request. */
  requestLog: boolean;
  /** The port at which metrics are served; undefined for nowhere. */
  metricsPort: number | undefined;
  /** Whether requests are traced. */
  traces: boolean;
}

/** The flags about it, as they were typed. */
export interface TelemetryFlags {
  'request-log': boolean;
  'metrics-host': string | undefined;
  'metrics-port': string | undefined;
}

/** What is typed counts before the environment. @throws CliError USAGE */
export function readTelemetry(flags: TelemetryFlags, env: NodeJS.ProcessEnv): TelemetryOptions {
  const port = metricsPort(flags, env);
  return {
    requestLog: flags['request-log'] || isOn('SVC_API_REQUEST_LOG', env['SVC_API_REQUEST_LOG']),
    metricsPort: port && readPort(port),
    traces: wantsTraces(env),
  };
}

/** The address at which metrics are served; undefined where neither says so. @throws CliError USAGE */
export function readMetricsHost(flags: TelemetryFlags, env: NodeJS.ProcessEnv): string | undefined {
  const typedHost = typed('--metrics-host', flags['metrics-host'], 'an address to listen on, such as 127.0.0.1');
  if (typedHost && !metricsPort(flags, env))
    throw new CliError('USAGE', '--metrics-host is given without --metrics-port.');
  return (typedHost ?? set('SVC_API_METRICS_HOST', env['SVC_API_METRICS_HOST']))?.value;
}

function metricsPort(flags: TelemetryFlags, env: NodeJS.ProcessEnv): Given | undefined {
  return (
    typed('--metrics-port', flags['metrics-port'], 'a number from 0 to 65535') ??
    set('SVC_API_METRICS_PORT', env['SVC_API_METRICS_PORT'])
  );
}

/** Whether the variables of OpenTelemetry ask for traces: by an endpoint, which they can switch off again. */
function wantsTraces(env: NodeJS.ProcessEnv): boolean {
  if (env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true' || env['OTEL_TRACES_EXPORTER'] === 'none') return false;
  return Boolean(env['OTEL_EXPORTER_OTLP_ENDPOINT'] || env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']);
}

function isOn(name: string, value = ''): boolean {
  if (value === '1' || value === '0' || value === '') return value === '1';
  throw new CliError('USAGE', `${name} is "${printable(value)}". Set it to 1 for on, or to 0 for off.`);
}
