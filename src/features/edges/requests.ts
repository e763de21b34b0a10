import type { ListedEdge } from './edges.ts';
import {
  around,
  list,
  mapped,
  nullable,
  number,
  object,
  of,
  query,
  type Shape,
  text,
  time,
  yesOrNo,
} from '../../remote/shape.ts';

const edge: Shape<ListedEdge> = object({
  id: of('edgeId', text),
  name: text,
  key: around({ id: of('keyId', text), name: of('keyName', text) }),
  address: mapped(nullable(text), (address) => address ?? undefined),
  leaseMs: number,
  isResting: yesOrNo,
  lagMs: number,
  lastAskedAt: time,
});

/** The requests to servers. */
export const REQUESTS = { edges: query('edges', {}, list(edge)) };
