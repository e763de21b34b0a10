/** The service: all rules together, for the library, servers and commands. */
export * from './answers.ts';
export { type CreatedKey, formatCursor, isCursor, type Page, type PageQuery, type RotatedKey } from './management.ts';
export { type FeatureParts, type KeysOptions, KeysService, SERVICE, type SharedParts } from './service.ts';
