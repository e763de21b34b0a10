/** The side of an origin: edges that follow it, with their leases and reports. */
export { EDGE_FORMS, type Edges, type Knowledge } from './edges.ts';
export { leaseToEdge } from './leases.ts';
export { edgesOf, Origin } from './origin.ts';
export { readEdgeReport } from './reports.ts';
