/** The form of a secret, its digest, and where one may be found. */
export * from './secret-finder.ts';
export * from './secret.ts';
