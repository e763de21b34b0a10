import { AggregatorRegistry, Registry } from 'prom-client';
import type { Sample } from './sample.ts';

/** The media type of Prometheus' text format. */
export const CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** Sums up the samples of processes. */
export async function summed(processes: readonly Sample[][]): Promise<Sample[]> {
  const samples: unknown = await aggregated(processes).getMetricsAsJSON();
  return samples as Sample[];
}

/** Writes the samples of processes in Prometheus' text format, summed up. */
export function exposed(processes: readonly Sample[][]): Promise<string> {
  return aggregated(processes).metrics();
}

function aggregated(processes: readonly Sample[][]): Registry {
  return AggregatorRegistry.aggregate([...processes]);
}
