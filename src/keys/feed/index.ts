/** Servers that answer without a store: what they are told, and how long it is relied on. */
export { answerLines, Edges, type ListedEdge, readEdgeReport } from './edges.ts';
