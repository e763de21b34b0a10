/** What the rules ask of a store, and what it keeps beside keys and their log. */
export * from './grants.ts';
export * from './feed.ts';
export * from './repository.ts';
export * from './schema-difference.ts';
export * from './used-tokens.ts';
