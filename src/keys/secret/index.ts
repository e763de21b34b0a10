/** Secrets: their form, their digest, and where requests carry them. */
export * from './secret-finder.ts';
export * from './secret.ts';
