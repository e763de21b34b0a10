/** Secrets: their form, their digest, and where requests carry them. */
export * from './secret.ts';
