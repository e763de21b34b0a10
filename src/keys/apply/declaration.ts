import type { ApiKey } from '../key/api-key.ts';
import type { Catalog } from '../permissions/catalog.ts';
import { validateDescription, normalizeDescription } from '../key/description.ts';
import { KeysError } from '../errors.ts';
import { readDate } from '../time.ts';
import { parsePermissions, parseRoles } from '../permissions/grants.ts';
import { validateName, normalizeName } from '../key/name.ts';
import { listOf, printable } from '../text.ts';
import { validateGrants } from '../key/validation.ts';

/** What a key is declared to be. What was left out is none, but for `enabled`: a key that was switched off stays so. */
export interface DeclaredKey extends Pick<ApiKey, 'name' | 'description' | 'roles' | 'permissions' | 'expiresAt'> {
  enabled?: boolean;
}

/** Leads from the whole declaration to one of its parts: names of fields, and places in lists from 0 on. */
export type Path = readonly (string | number)[];

/** One thing that is wrong with a declaration. */
export interface DeclarationIssue {
  path: Path;
  /** Whether it is the field itself that is wrong, not its value. */
  ofField?: boolean;
  message: string;
}

/** A declaration breaks rules: `issues` has all of them, each with its place. */
export class DeclarationError extends KeysError {
  readonly issues: readonly DeclarationIssue[];

  constructor(issues: readonly DeclarationIssue[]) {
    super('DECLARATION_INVALID', issues.map(({ path, message }) => `${textOfPath(path)}: ${message}`).join('\n'));
    this.issues = issues;
  }
}

export const KEY_FIELDS = ['name', 'description', 'roles', 'permissions', 'expiresAt', 'enabled'] as const;
/** `$schema` tells an editor which JSON Schema holds. */
export const TOP_FIELDS = ['keys', '$schema'] as const;

/** Throws a `DeclarationError` with all the issues, if there are any. */
export function assertValidDeclaration(issues: readonly DeclarationIssue[]): void {
  if (issues.length > 0) throw new DeclarationError(issues);
}

/**
 * Reads a declaration from what was parsed, `{ keys: [...] }`. Whether an end is still to come is seen when it is compared
 * with the store: a key may have reached the end that it was declared with.
 * @throws DeclarationError with all issues
 */
export function readDeclaration(value: unknown, catalog: Catalog): DeclaredKey[] {
  const reader = new Reader(catalog);
  const keys = reader.declaration(value);
  assertValidDeclaration(reader.issues);
  return keys;
}

/** Goes through a declaration, and gathers what is wrong. Where something is, what it returns is of no use. */
class Reader {
  readonly issues: DeclarationIssue[] = [];
  readonly #catalog: Catalog;
  readonly #names = new Set<string>();

  constructor(catalog: Catalog) {
    this.#catalog = catalog;
  }

  declaration(value: unknown): DeclaredKey[] {
    if (!isRecord(value)) {
      this.#report([], 'The declaration must be a map with the field "keys", a list of keys.');
      return [];
    }
    this.#refuseOthers(value, [], TOP_FIELDS);
    if (value['$schema'] !== undefined) this.#text(value['$schema'], ['$schema']);
    if (Array.isArray(value['keys'])) return value['keys'].map((key, index) => this.#key(key, ['keys', index]));
    const problem = 'keys' in value ? 'The field "keys" must be a list.' : 'The field "keys" is missing.';
    this.#report('keys' in value ? ['keys'] : [], `${problem} Write "keys: []" for none.`);
    return [];
  }

  #key(value: unknown, path: Path): DeclaredKey {
    const key: DeclaredKey = { name: '', description: null, roles: [], permissions: [], expiresAt: null };
    if (!isRecord(value)) {
      this.#report(path, `A key must be a map with the field "name", and some of ${listOf(KEY_FIELDS.slice(1))}.`);
      return key;
    }
    this.#refuseOthers(value, path, KEY_FIELDS);
    const { name, description, roles, permissions, expiresAt, enabled } = value;
    if (name === undefined) this.#report(path, 'The field "name" is missing.');
    else key.name = this.#name(name, [...path, 'name']);
    if (description !== undefined && description !== null)
      key.description = this.#description(description, [...path, 'description']);
    key.roles = this.#list(roles, [...path, 'roles'], parseRoles);
    key.permissions = this.#list(permissions, [...path, 'permissions'], parsePermissions);
    for (const { message } of validateGrants(itemsOf(roles), itemsOf(permissions))) this.#report(path, message);
    if (expiresAt !== undefined && expiresAt !== null) key.expiresAt = this.#end(expiresAt, [...path, 'expiresAt']);
    if (typeof enabled === 'boolean') key.enabled = enabled;
    else if (enabled !== undefined) this.#report([...path, 'enabled'], 'The field "enabled" must be true or false.');
    return key;
  }

  #name(value: unknown, path: Path): string {
    const text = this.#text(value, path);
    if (text === undefined) return '';
    const issue = validateName(text);
    if (issue) this.#report(path, issue.message);
    const name = normalizeName(text);
    if (!issue && this.#names.has(name)) this.#report(path, `"${name}" is declared more than once.`);
    this.#names.add(name);
    return name;
  }

  #description(value: unknown, path: Path): string | null {
    const text = this.#text(value, path);
    const issue = text === undefined ? undefined : validateDescription(text);
    if (issue) this.#report(path, issue.message);
    return normalizeDescription(text);
  }

  #list<Item>(value: unknown, path: Path, parse: typeof parseRoles | typeof parsePermissions): Item[] {
    if (value === undefined) return [];
    if (!Array.isArray(value)) {
      this.#report(path, `The field "${path.at(-1)}" must be a list.`);
      return [];
    }
    const found = value.flatMap((item: unknown, index) => {
      const text = this.#text(item, [...path, index]);
      const { values, issues } = text === undefined ? { values: [], issues: [] } : parse([text], this.#catalog);
      for (const { message } of issues) this.#report([...path, index], message);
      return values as Item[];
    });
    return [...new Set(found)];
  }

  #end(value: unknown, path: Path): number | null {
    const text = this.#text(value, path);
    const instant = text === undefined ? undefined : readDate(text);
    if (text !== undefined && instant === undefined)
      this.#report(path, `"${printable(text)}" is not a date and time by RFC 3339, such as 2030-12-31T23:59:59Z.`);
    return instant ?? null;
  }

  #text(value: unknown, path: Path): string | undefined {
    if (typeof value === 'string') return value;
    const what = typeof path.at(-1) === 'number' ? 'An item of this list' : `The field "${path.at(-1)}"`;
    this.#report(path, `${what} must be text. Quote what YAML takes for something else.`);
    return undefined;
  }

  #refuseOthers(value: object, path: Path, fields: readonly string[]): void {
    for (const field of Object.keys(value)) {
      if (fields.includes(field)) continue;
      const message = `"${printable(field)}" is not a field. The fields here are ${listOf(fields)}.`;
      this.issues.push({ path: [...path, field], ofField: true, message });
    }
  }

  #report(path: Path, message: string): void {
    this.issues.push({ path, message });
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What counts as items where it is only asked whether there are any: what is no list is a issue of its own. */
function itemsOf(value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}

/** `keys[3].name` */
function textOfPath(path: Path): string {
  const text = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${printable(step)}`)).join('');
  return text.replace(/^\./, '') || 'declaration';
}
