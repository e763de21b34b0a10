import { GraphQLError } from 'graphql';
import type { AuditValues } from '../keys/audit/index.ts';
import { assertValid, type Issue, printableJson, withoutUndefined } from '../keys/basics/index.ts';
import { type KeyChange, REMOVABLE_FIELDS } from '../keys/key/index.ts';
import {
  type Catalog,
  groupPermissions,
  type Permission,
  type ResourceActions,
  type Role,
} from '../keys/permissions/index.ts';
import type { AuditChange, PageInfo, PermissionInput, UpdateApiKeyInput } from './schema-types.ts';

export function connectionOf<Node>(
  nodes: readonly Node[],
  formatCursor: (node: Node) => string,
  hasNextPage: boolean,
): { edges: { node: Node; cursor: string }[]; pageInfo: PageInfo } {
  const edges = nodes.map((node) => ({ node, cursor: formatCursor(node) }));
  const pageInfo = {
    hasNextPage,
    hasPreviousPage: false,
    startCursor: edges.at(0)?.cursor ?? null,
    endCursor: edges.at(-1)?.cursor ?? null,
  };
  return { edges, pageInfo };
}

/** The cursor of an item of a list, by its number. */
export function cursorOf(list: 'log' | 'route', { number }: { readonly number: number }): string {
  return Buffer.from(`${list}:${number}`).toString('base64url');
}

/** The number in a cursor of `cursorOf`. @throws GraphQLError INPUT_INVALID */
export function readCursor(list: 'log' | 'route', cursor: string): number {
  const [, of, number] = /^(\w+):(\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (of !== list) throw badInput('"after" is not a cursor of this list. Use an endCursor that it returned.');
  return Number(number);
}

/** Permissions by resource, without those that are not in this schema: several hosts can share a store. */
export function knownTo(catalog: Catalog, permissions: Iterable<Permission>): ResourceActions[] {
  return groupPermissions([...permissions].filter((permission) => catalog.knows(permission)));
}

export function badInput(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'INPUT_INVALID' } });
}

export function auditChanges(before: AuditValues | null, after: AuditValues | null): AuditChange[] {
  return Object.keys(after ?? before ?? {}).map((field) => ({
    field,
    before: jsonOf(before?.[field]),
    after: jsonOf(after?.[field]),
  }));
}

/** Roles and permissions in the form that the rules take. */
export function grantsIn({ roles, permissions }: GrantsInput): { roles: readonly Role[]; permissions: Permission[] } {
  const grants = (permissions ?? []).flatMap(({ resource, actions }) =>
    actions.map((action): Permission => `${resource}:${action}`),
  );
  return { roles: roles ?? [], permissions: grants };
}

/** A change of a key in the form that the rules take. @throws ValidationError INPUT_INVALID */
export function readKeyChange(input: Omit<UpdateApiKeyInput, 'id'>): KeyChange {
  refuseNulls(input, REMOVABLE_FIELDS);
  const { roles, permissions, ...change } = input;
  const granted = grantsIn({ roles, permissions });
  const grants = { roles: roles && granted.roles, permissions: permissions && granted.permissions };
  return withoutUndefined({ ...change, ...grants });
}

interface GrantsInput {
  roles?: readonly Role[] | null | undefined;
  permissions?: readonly PermissionInput[] | null | undefined;
}

function jsonOf(value: unknown): string | null {
  return value === undefined ? null : printableJson(JSON.stringify(value));
}

/**
 * Refuses null for the fields of an input, except those where it has a meaning: its author may expect that null removes
 * a value, and would not notice that nothing happened.
 * @throws ValidationError INPUT_INVALID
 */
export function refuseNulls<Input extends object, Meaningful extends string = never>(
  input: Input,
  meaningful: readonly Meaningful[] = [],
): asserts input is Input & { [Field in Exclude<keyof Input, Meaningful>]: Exclude<Input[Field], null> } {
  const allowed: readonly string[] = meaningful;
  const nulls = Object.entries(input).filter(([field, value]) => value === null && !allowed.includes(field));
  assertValid(
    nulls.map(([field]): Issue => {
      const message = `"${field}" must not be null. Leave it out, or give it a value.`;
      return { code: 'INPUT_INVALID', message, field };
    }),
  );
}
