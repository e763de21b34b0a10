import type { HostResource } from '../keys/permissions/catalog.ts';

/** Resolvers by type and field, as graphql-tools takes them. */
export type Resolvers = Record<string, unknown>;

/** A part of a schema that is parsed already, by any release of graphql. */
export interface ParsedTypeDefs {
  readonly kind: string;
  readonly definitions: readonly object[];
}

/**
 * A host's own part of the schema, which it returns from the oclif hook `svc-api:schema`. Each of its root fields must
 * carry `@requires(resource:, action:)`. It adds to the built-in part, and cannot change that.
 */
export interface SchemaExtension {
  /** SDL, such as `extend type Query { disks: [Disk!]! @requires(resource: DISK_POOL, action: READ_ANY) }`. */
  typeDefs?: string | ParsedTypeDefs | readonly (string | ParsedTypeDefs)[];
  /** The resolvers, or a function that loads them: only `serve` calls it. */
  resolvers?: Resolvers | (() => Resolvers | Promise<Resolvers>);
  /** Names of the host's own resources: capital letters, digits and underscores, at most 64. */
  resources?: readonly HostResource[];
  /** Whose part it is, for errors. That of a hook is its plugin's, and is not returned by it. */
  name?: string;
}

/** What the schema tells about the running program. */
export interface ServiceInfo {
  name: string;
  version: string;
  /** Milliseconds since 1970. */
  startedAt: number;
}
