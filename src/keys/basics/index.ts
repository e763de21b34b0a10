/**
 * What all rules rest on: errors, texts, times, limits, networks, options, documents, and how long work lets others
 * in.
 */
export * from './csv.ts';
export * from './json.ts';
export * from './nearest.ts';
export * from './options.ts';
export * from './page-size.ts';
export * from './text.ts';
export * from './document.ts';
export * from './error-codes/index.ts';
export * from './errors.ts';
export * from './file-rights.ts';
export * from './secret-file.ts';
export * from './networks.ts';
export * from './origin.ts';
export * from './port.ts';
export * from './public-url.ts';
export * from './source.ts';
export * from './outgoing.ts';
export * from './progress.ts';
export * from './steps.ts';
export * from './turns.ts';
export * from './duration.ts';
export * from './limit.ts';
export * from './relative-time.ts';
export * from './time.ts';
export * from './wakeup.ts';
