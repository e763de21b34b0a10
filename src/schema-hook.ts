import type { Hook, Hooks } from '@oclif/core/interfaces';
import type { SchemaExtension } from './graphql/extension.ts';

/**
 * The hooks that svc-api calls, for oclif's type `Hook`.
 * @example
 * const hook: Hook<'svc-api:schema', Interfaces.Hooks & SvcApiHooks> = async () => ({ resources: ['BACKUP'] });
 */
export interface SvcApiHooks {
  /** Brings the host's part of the schema. `apikey` asks for its resources, and `serve` for all of it. */
  'svc-api:schema': { options: Record<string, unknown>; return: Omit<SchemaExtension, 'name'> | undefined };
}

/**
 * The oclif hook `svc-api:schema`.
 * @example
 * const hook: SchemaHook = async () => ({ resources: ['BACKUP'] });
 * export default hook;
 */
export type SchemaHook = Hook<'svc-api:schema', Hooks & SvcApiHooks>;
