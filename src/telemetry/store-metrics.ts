import type { Registry } from 'prom-client';
import { addCounter, type Value } from './collected.ts';
import { Durations } from './durations.ts';

/** From a look into a file to a wait for another writer. */
const SECONDS = [0.00001, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5];

/** Tells a registry how long the store takes. @returns what is to be told of it */
export function addStoreMetrics(registry: Registry) {
  const durations = new Durations(
    registry,
    {
      name: 'svc_api_store_duration_seconds',
      help: 'Time that the store took: find for the key of a secret, read, or write with the wait for other writers.',
    },
    { label: 'operation', bounds: SECONDS },
  );
  const errors = { find: 0, read: 0, write: 0 };
  addCounter(
    registry,
    { name: 'svc_api_store_errors_total', help: 'What was asked of the store in vain.', labelNames: ['operation'] },
    () => Object.entries(errors).map(([operation, count]): Value => [count, { operation }]),
  );
  return (operation: keyof typeof errors, seconds: number, failed: boolean) => {
    durations.observe(operation, seconds);
    if (failed) errors[operation] += 1;
  };
}
