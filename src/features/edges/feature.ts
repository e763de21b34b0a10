import type { Feature } from '../../feature.ts';
import { feed } from '../../store/index.ts';
import { errors } from './errors.ts';
import { edgeOperations } from './operations.ts';

/** Servers that answer without a store, and the feed that they follow. */
export const edges: Feature = {
  name: 'edges',
  errors,
  ports: [feed],
  ...edgeOperations,
  schema: () => import('./schema.ts'),
  async routes(app, context) {
    const { addFeed } = await import('./routes.ts');
    addFeed(app, context, { needsCertificate: context.config?.tls?.clientCa !== undefined });
  },
};
