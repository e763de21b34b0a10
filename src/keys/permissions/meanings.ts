/** What an action allows on a resource, for people: `read anything of`. */
export function meaningOfAction(action: string): string {
  const [verb = '', extent] = action.toLowerCase().split('_');
  return `${verb} ${extent === 'any' ? 'anything' : 'what is its own'} of`;
}

/** What a permission allows, for people. @param permission `RESOURCE:ACTION` */
export function meaningOfPermission(permission: string): string {
  const [resource = '', action = ''] = permission.split(':');
  return `May ${meaningOfAction(action)} ${resource.toLowerCase().replaceAll(/_+/g, ' ')}.`;
}

/** What an item of a scope allows, for people. */
export function meaningOfScope(scope: string, catalog: { meaningOf(role: string): string }): string {
  return scope.startsWith('role:') ? catalog.meaningOf(scope.slice('role:'.length)) : meaningOfPermission(scope);
}

export interface AllowedAction {
  readonly action: string;
  readonly resources: readonly string[];
}

const VERBS = ['READ', 'CREATE', 'UPDATE', 'DELETE'];

/**
 * What permissions allow together, by actions. What another one includes is left out: `X_OWN` where there is `X_ANY`.
 * @param permissions each as `RESOURCE:ACTION`
 */
export function groupByAction(permissions: Iterable<string>): AllowedAction[] {
  const given = new Set(permissions);
  const resources = new Map<string, string[]>(
    VERBS.flatMap((verb) => [`${verb}_ANY`, `${verb}_OWN`]).map((a) => [a, []]),
  );
  for (const permission of given) {
    const [resource = '', action = ''] = permission.split(':');
    if (!action.endsWith('_OWN') || !given.has(permission.replace(/_OWN$/, '_ANY')))
      resources.get(action)?.push(resource);
  }
  return Array.from(resources, ([action, on]) => ({ action, resources: on.toSorted() })).filter(
    ({ resources: on }) => on.length > 0,
  );
}
