import type { OwnFeature, TelemetryRoom } from '../../feature.ts';

/** Metrics, logs and traces of requests. */
export const telemetry: OwnFeature = {
  name: 'telemetry',
  provides: {
    async telemetry(): Promise<TelemetryRoom> {
      const { serveWorkerMetrics, startTelemetry } = await import('./telemetry.ts');
      return { start: startTelemetry, serveWorkers: serveWorkerMetrics };
    },
  },
};
