import type { Feature } from '../../feature.ts';
import { feed } from '../../store/index.ts';

/** The feed that servers without a store follow. */
export const edges: Feature = { name: 'edges', ports: [feed] };
