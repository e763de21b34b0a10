import { formatList, type Issue, nearest, type OrRefusal, printable } from '../basics/index.ts';
import { type Catalog, exampleResource, type Grant, type Permission, type Role } from './catalog.ts';

/** The grants of a key that are not declared here. They allow nothing until they are declared again. */
export function unknownGrantsOf(
  { roles, permissions }: { roles: readonly Role[]; permissions: readonly Permission[] },
  catalog: Catalog,
): Grant[] {
  return [...roles, ...permissions].filter((grant) => !catalog.knows(grant));
}

/** The result of parsing a list. */
interface Parsed<Value> {
  /** The valid items, without duplicates. */
  values: Value[];
  /** The issues with the other items. */
  issues: Issue[];
}

/** Parses names of roles, case-insensitive. Duplicates are dropped; unknown and empty items are issues. */
export function parseRoles(items: readonly string[], catalog: Catalog): Parsed<Role> {
  return parseItems<Role>('role', items, (item) => {
    const role = item.toUpperCase();
    if (!role.includes(':') && catalog.knows(role)) return { value: role };
    return { explain };

    function explain(): string {
      const what = item === '' ? 'An item of the list of roles is empty.' : `"${printable(item)}" is not a role.`;
      return `${what} ${suggest('role', item, catalog.roles)}`;
    }
  });
}

/** Why a text is not a permission in the exact spelling that programs need. Undefined if it is one. */
export function invalidPermission(text: string, catalog: Catalog): string | undefined {
  if (text.includes(':') && catalog.knows(text)) return undefined;
  const { values, issues } = parsePermissions([text], catalog);
  return issues[0]?.message ?? `"${text}" is not a permission. Did you mean ${values[0]}?`;
}

/** Parses permissions, `RESOURCE:ACTION`, case-insensitive. Duplicates are dropped; invalid items are issues. */
export function parsePermissions(items: readonly string[], catalog: Catalog): Parsed<Permission> {
  return parseItems<Permission>('permission', items, (item) => {
    const written = item.toUpperCase();
    if (written.includes(':') && catalog.knows(written)) return { value: written as Permission };
    const [resourceText = '', actionText = '', ...rest] = item.split(':').map((part) => part.trim());
    const resource = match(resourceText, catalog.resources);
    const action = match(actionText, catalog.actions);
    if (resource && action && rest.length === 0) return { value: `${resource}:${action}` };
    return { explain };

    function explain(): string {
      if (item === '')
        return `An item of the list of permissions is empty. Write each as RESOURCE:ACTION, such as ${exampleResource(catalog)}:READ_ANY.`;
      const shown = `"${printable(item)}"`;
      if (item.includes('*')) return `${shown} is not a permission: wildcards are not allowed. ${insteadOf()}`;
      if (rest.length > 0 || !item.includes(':') || resourceText === '' || actionText === '') {
        const likelyResource = resource ?? nearest(resourceText, catalog.offered, 1)[0] ?? exampleResource(catalog);
        const likelyAction = action ?? nearest(actionText, catalog.actions, 1)[0] ?? 'READ_ANY';
        return `${shown} is not a permission. Write RESOURCE:ACTION, such as ${likelyResource}:${likelyAction}.`;
      }
      const parts = [];
      if (!resource) parts.push(noResource(resourceText, catalog));
      if (!action) parts.push(noAction(actionText, catalog));
      return `${shown} is not a permission: ${parts.join(' ')}`;
    }

    /** The names to use instead of a wildcard. `X_ANY` includes `X_OWN`. */
    function insteadOf(): string {
      if (!resource) return 'List each permission, or grant a role: VIEWER reads, ADMIN includes all.';
      const start = actionText.toUpperCase().split('*')[0]!;
      const all = catalog.actions.filter((each) => !each.endsWith('_OWN'));
      const meant = all.filter((each) => each.startsWith(start));
      return `List each one: ${(meant.length > 0 ? meant : all).map((each) => `${resource}:${each}`).join(',')}.`;
    }
  });
}

/** Parses the name of a resource, case-insensitive. */
export function parseResource(text: string, catalog: Catalog): OrRefusal<{ readonly value: string }> {
  const value = match(text.trim(), catalog.resources);
  return value === undefined ? { refusal: noResource(text, catalog) } : { value };
}

function noResource(text: string, { offered, declaredIn }: Catalog): string {
  return `"${printable(text)}" is not a resource. ${suggest('resource', text, offered)}${declare('Resources', declaredIn)}`;
}

function noAction(text: string, { actions, declaredIn }: Catalog): string {
  // An action that resembles another one is a misspelling.
  const where = nearest(text, actions).length > 0 ? '' : declare('Actions', declaredIn);
  return `"${printable(text)}" is not an action. ${suggest('action', text, actions)}${where}`;
}

function declare(what: 'Resources' | 'Actions', declaredIn: string | undefined): string {
  if (declaredIn === undefined) return '';
  return ` ${what} of your own are declared under "${what.toLowerCase()}" in ${printable(declaredIn, 200)}.`;
}

function parseItems<Value extends string>(
  what: 'role' | 'permission',
  items: readonly string[],
  read: (item: string) => { value: Value } | { explain: () => string },
): Parsed<Value> {
  const values = new Set<Value>();
  const issues = new Map<string, Issue>();
  for (const item of items) {
    const result = read(item.trim());
    if ('value' in result) values.add(result.value);
    else {
      // Suggesting similar names is slow, so it is done once, and only if nothing simpler is wrong.
      const message = unseparated(item) ?? result.explain();
      issues.set(message, { code: what === 'role' ? 'ROLE_INVALID' : 'PERMISSION_INVALID', message });
    }
  }
  return { values: [...values], issues: [...issues.values()] };

  /** The problem with an item that holds several, such as `VIEWER GUEST`. */
  function unseparated(item: string): string | undefined {
    const words = item.split(/[\s;|]+/).filter((word) => word !== '');
    if (words.length < 2) return undefined;
    const values = new Set<Value>();
    for (const word of words) {
      const result = read(word);
      if ('explain' in result) return undefined;
      values.add(result.value);
    }
    const list = printable([...values].join(','), 200);
    return `"${printable(item)}" is not a ${what}. Separate the items by commas: ${list}`;
  }
}

function match<Word extends string>(text: string, words: readonly Word[]): Word | undefined {
  const wanted = text.toUpperCase();
  return words.find((word) => word === wanted);
}

function suggest(what: 'role' | 'resource' | 'action', item: string, words: readonly string[]): string {
  const close = nearest(item, words);
  if (close.length > 0) return `Did you mean ${formatList(close, 'or')}?`;
  return `The ${what}s are ${formatList(words)}.`;
}
