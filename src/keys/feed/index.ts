/** Recipients of changes: edges that answer without a store, with their leases and reports. */
export * from './edges.ts';
export * from './reports.ts';
