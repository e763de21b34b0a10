import { GraphQLError } from 'graphql';
import type { AuditValues } from '../keys/audit/audit-entry.ts';
import type { Catalog, Permission } from '../keys/permissions/catalog.ts';
import { groupPermissions, type ResourceActions } from '../keys/permissions/permission-set.ts';
import type { GraphQLContext } from './context.ts';

/** A resolver of a root field. */
export type Resolve<Args = object> = (parent: unknown, args: Args, context: GraphQLContext) => unknown;

/** A page of a list as a Relay cursor connection. */
export function connectionOf<Node>(
  nodes: readonly Node[],
  cursorOf: (node: Node) => string,
  hasNextPage: boolean,
): object {
  const edges = nodes.map((node) => ({ node, cursor: cursorOf(node) }));
  const pageInfo = {
    hasNextPage,
    hasPreviousPage: false,
    startCursor: edges.at(0)?.cursor ?? null,
    endCursor: edges.at(-1)?.cursor ?? null,
  };
  return { edges, pageInfo };
}

/** Permissions by resource. Leaves out those that are not in this schema: a store may be shared by several hosts. */
export function knownTo(catalog: Catalog, permissions: Iterable<Permission>): ResourceActions[] {
  return groupPermissions([...permissions].filter((permission) => catalog.knows(permission)));
}

/** The error for an invalid argument. */
export function badInput(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'INPUT_INVALID' } });
}

/** The changes of a key, field by field, with values as JSON. */
export function auditChanges(before: AuditValues | null, after: AuditValues | null): object[] {
  return Object.keys(after ?? before ?? {}).map((field) => ({
    field,
    before: jsonOf(before?.[field]),
    after: jsonOf(after?.[field]),
  }));
}

function jsonOf(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}
