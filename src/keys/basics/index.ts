/**
 * What all rules rest on: errors, texts, times, limits, networks, options, documents, and how long work lets others
 * in.
 */
export * from './values.ts';
export * from './document.ts';
export * from './errors.ts';
export * from './file-rights.ts';
export * from './secret-file.ts';
export * from './networks.ts';
export * from './outgoing.ts';
export * from './steps.ts';
export * from './time.ts';
export * from './wakeup.ts';
