/** What the rules ask of a store, and what it keeps beside keys and their log. */
export * from './consent-request.ts';
export * from './feed.ts';
export * from './repository.ts';
