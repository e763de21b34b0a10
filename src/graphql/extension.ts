import type { HostResource } from '../keys/permissions/catalog.ts';

/** Resolvers by type and field, as graphql-tools takes them. */
export type Resolvers = Record<string, unknown>;

/**
 * A host's own part of the schema, which it returns from the oclif hook `svc-api:schema`. Each of its root fields must
 * carry `@requires(resource:, action:)`.
 */
export interface SchemaExtension {
  /** SDL, such as `extend type Query { disks: [Disk!]! @requires(resource: DISK_POOL, action: READ_ANY) }`. */
  typeDefs: string | readonly string[];
  /** The resolvers, or a function that loads them: only `serve` calls it. */
  resolvers: Resolvers | (() => Resolvers | Promise<Resolvers>);
  /** Names of the host's own resources: capital letters, digits and underscores, at most 64. */
  resources?: readonly HostResource[];
}

/** What the schema tells about the running program. */
export interface ServiceInfo {
  name: string;
  version: string;
  /** Milliseconds since 1970. */
  startedAt: number;
}
