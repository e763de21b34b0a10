import { type DocumentReader, isRecord } from '../keys/document.ts';
import {
  type Catalog,
  type HostResource,
  invalidResource,
  invalidRole,
  type Permission,
} from '../keys/permissions/catalog.ts';
import { parsePermissions } from '../keys/permissions/grants.ts';

/** The fields of a resource that is not a name alone. */
export const RESOURCE_FIELDS = ['name', 'credentials'] as const;
/** The most resources, and the most roles: each is in the GraphQL schema. */
export const MAX_DECLARED = 1000;

/** Reads the installation's own resources. If there are issues, those that remain are valid. */
export function readResources(reader: DocumentReader, value: unknown): HostResource[] {
  const names = new Set<string>();
  const list = reader.list(value, ['resources']);
  if (list.length > MAX_DECLARED) reader.report(['resources'], tooMany(list.length, 'resources'));
  return list.slice(0, MAX_DECLARED).flatMap((item, index) => {
    const resource = readResource(reader, item, index);
    if (!resource) return [];
    if (names.has(resource.name)) reader.report(['resources', index], `"${resource.name}" is declared more than once.`);
    names.add(resource.name);
    return [resource];
  });
}

function readResource(reader: DocumentReader, item: unknown, index: number): Exclude<HostResource, string> | undefined {
  const path = ['resources', index];
  if (typeof item !== 'string' && !isRecord(item)) {
    reader.report(path, 'A resource must be a name, or a map with the field "name", and "credentials".');
    return undefined;
  }
  const { name: given, credentials } =
    typeof item === 'string' ? { name: item } : reader.knownFields(item, path, RESOURCE_FIELDS);
  if (given === undefined) return reader.missing(path, 'name');
  const name = reader.text(given, typeof item === 'string' ? path : [...path, 'name']);
  if (name === undefined) return undefined;
  if (credentials !== undefined && typeof credentials !== 'boolean') {
    reader.report([...path, 'credentials'], 'The field "credentials" must be true or false.');
    return undefined;
  }
  const resource = { name, ...(credentials !== undefined && { credentials }) };
  const problem = invalidResource(resource);
  if (problem === undefined) return resource;
  reader.report(path, problem);
  return undefined;
}

/** Reads the installation's own roles. @param catalog with all resources */
export function readRoles(
  reader: DocumentReader,
  value: unknown,
  catalog: Catalog,
): Record<string, readonly Permission[]> {
  if (value === undefined) return {};
  if (!isRecord(value)) {
    reader.report(['roles'], 'The field "roles" must be a map of names to lists of permissions.');
    return {};
  }
  const names = Object.keys(value);
  if (names.length > MAX_DECLARED) reader.report(['roles'], tooMany(names.length, 'roles'));
  const roles = names.slice(0, MAX_DECLARED).flatMap((name): [string, Permission[]][] => {
    const problem = invalidRole(name);
    if (problem !== undefined) reader.issues.push({ path: ['roles', name], ofField: true, message: problem });
    const permissions = reader.parsedList(value[name], ['roles', name], (items) => parsePermissions(items, catalog));
    if (Array.isArray(value[name]) && value[name].length === 0)
      reader.report(['roles', name], `The role "${name}" needs at least one permission.`);
    return problem === undefined ? [[name, permissions]] : [];
  });
  return Object.fromEntries(roles);
}

function tooMany(count: number, what: string): string {
  return `There are ${count} ${what}; at most ${MAX_DECLARED} are allowed.`;
}
