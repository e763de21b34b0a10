import type { Action, Catalog } from '../keys/permissions/catalog.ts';
import { splitPermission } from '../keys/permissions/permission-set.ts';

/** What an item of a scope allows, for people. */
export function meaningOfScope(scope: string, catalog: Catalog): string {
  if (scope.startsWith('role:')) return catalog.meaningOf(scope.slice('role:'.length));
  const [resource, action] = splitPermission(scope as `${string}:${Action}`);
  const [verb = '', extent] = action.toLowerCase().split('_');
  const name = resource.toLowerCase().replaceAll(/_+/g, ' ');
  return `May ${verb} ${extent === 'any' ? `everything of ${name}` : `what is its own of ${name}`}.`;
}
