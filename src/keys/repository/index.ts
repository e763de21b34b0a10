/** The interface of a store: keys, their log, and data of features. */
export * from './grants.ts';
export * from './followers.ts';
export * from './repository.ts';
export * from './schema-difference.ts';
export * from './used-tokens.ts';
