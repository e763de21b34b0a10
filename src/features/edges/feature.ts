import type { OwnFeature } from '../../feature.ts';
import { errors } from './errors.ts';
import { edgeOperations } from './operations.ts';

/** Servers that answer without a store, and the feed that they follow. */
export const edges: OwnFeature = {
  name: 'edges',
  // READ_ANY gives the digests of all secrets.
  resources: [{ name: 'EDGE', credentials: true }],
  errors,
  ...edgeOperations,
  schema: () => import('./schema.ts'),
  store: async () => (await import('./store.ts')).feedStore,
  checks: [{ name: 'EDGES', run: async (context) => (await import('./checks.ts')).checkEdges(context) }],
  provides: { metrics: async () => (await import('./metrics.ts')).feedMetrics },
  async routes(app, context) {
    const { addFeed } = await import('./routes.ts');
    addFeed(app, context, { needsCertificate: context.config?.tls?.clientCa !== undefined });
  },
};
