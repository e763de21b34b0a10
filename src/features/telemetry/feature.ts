import type { CommandAddition, OwnFeature, TelemetryRoom } from '../../feature.ts';

const OF_SERVERS: CommandAddition = {
  flags: {
    'request-log': {
      description: 'Log one line for each request. Default: SVC_API_REQUEST_LOG, or off.',
      group: 'OPERATION',
    },
    'metrics-port': {
      description: 'Port of /metrics for Prometheus; 0 picks a free one. Default: SVC_API_METRICS_PORT, or none.',
      value: '<port>',
      group: 'OPERATION',
    },
    'metrics-host': {
      description: 'Address at which metrics are served: "server.metricsHost" in svc-api.yaml.',
      value: '<address>',
      isHidden: true,
    },
  },
};

/** Metrics, logs and traces of requests. */
export const telemetry: OwnFeature = {
  name: 'telemetry',
  commands: { serve: OF_SERVERS, 'apikey:guard': OF_SERVERS, 'apikey:edge': OF_SERVERS },
  provides: {
    async telemetry(): Promise<TelemetryRoom> {
      const { serveWorkerMetrics, startTelemetry } = await import('./telemetry.ts');
      return { start: startTelemetry, serveWorkers: serveWorkerMetrics };
    },
  },
};
