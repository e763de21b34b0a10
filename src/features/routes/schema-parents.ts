export type { ExplainedRoute as Route } from './explainer.ts';
