/** A key's fields and their rules, its state and use, and what keys did to others. */
export * from './api-key.ts';
export * from './labels.ts';
export * from './person.ts';
export * from './effect.ts';
export * from './rotation.ts';
export * from './skeleton.ts';
export * from './usage.ts';
