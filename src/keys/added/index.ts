export * from './failures.ts';
export * from './feature-of-fields.ts';
export * from './field-types.ts';
export * from './metrics.ts';
export * from './names.ts';
export * from './registry.ts';
export { asProperties } from './rules.ts';
export { words } from './text-rules.ts';
export * from './work.ts';
