/** Permissions: the catalog, grants, permission sets, and the policy for keys. */
export * from './catalog.ts';
export * from './parse-grants.ts';
export * from './policy.ts';
export * from './permission-set.ts';
export * from './scope.ts';
export * from './actions.ts';
