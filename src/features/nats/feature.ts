import type { Feature } from '../../feature.ts';

export const nats: Feature = { name: 'nats', needs: ['edge'] };
