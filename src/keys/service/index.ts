/** All rules together, as the library, servers and commands use them. */
export * from './answers.ts';
export { type CreatedKey, formatCursor, isCursor, type Page, type PageQuery, type RotatedKey } from './management.ts';
export { type FeatureParts, type KeysOptions, KeysService, SERVICE } from './service.ts';
