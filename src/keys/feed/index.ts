/** Servers that answer without a store: what they are told, and how long it is relied on. */
export {
  answerLines,
  EDGE_FORMS,
  type EdgePoll,
  Edges,
  type ListedEdge,
  MAX_FEED_LEASES,
  readEdgeReport,
  type Knowledge,
} from './edges.ts';
