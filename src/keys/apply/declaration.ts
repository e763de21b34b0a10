import type { ApiKey } from '../key/api-key.ts';
import type { Catalog } from '../permissions/catalog.ts';
import { validateDescription, normalizeDescription } from '../key/description.ts';
import { KeysError } from '../errors.ts';
import { notADate } from '../key/expiry.ts';
import { readDate } from '../time.ts';
import { parsePermissions, parseRoles } from '../permissions/grants.ts';
import { validateName, normalizeName } from '../key/name.ts';
import { listOf, printable } from '../text.ts';
import { validateGrants } from '../key/validation.ts';

/** A key as it is declared. An omitted field means none, except that `enabled` then stays as it is. */
export interface DeclaredKey extends Pick<ApiKey, 'name' | 'description' | 'roles' | 'permissions' | 'expiresAt'> {
  /** Whether the key is accepted. A new key is, unless this is false. */
  enabled?: boolean;
}

/** Locates a part of a declaration: field names, and list indexes from 0. */
export type DeclarationPath = readonly (string | number)[];

/** One problem in a declaration. */
export interface DeclarationIssue {
  /** Where it is. */
  path: DeclarationPath;
  /** Whether the field itself is wrong, not its value. */
  ofField?: boolean;
  /** A sentence that names the value. */
  message: string;
}

/** An invalid declaration: `issues` lists every problem with its location. */
export class DeclarationError extends KeysError {
  /** At least one. */
  readonly issues: readonly DeclarationIssue[];

  constructor(issues: readonly DeclarationIssue[]) {
    super('DECLARATION_INVALID', issues.map(({ path, message }) => `${formatPath(path)}: ${message}`).join('\n'));
    this.issues = issues;
  }
}

/** The fields of a declared key. */
export const KEY_FIELDS = ['name', 'description', 'roles', 'permissions', 'expiresAt', 'enabled'] as const;
/** The fields of a declaration; `$schema` names its JSON Schema for editors. */
export const TOP_FIELDS = ['keys', '$schema'] as const;

/** Throws a `DeclarationError` with all the issues, if there are any. */
export function assertValidDeclaration(issues: readonly DeclarationIssue[]): void {
  if (issues.length > 0) throw new DeclarationError(issues);
}

/**
 * Reads a parsed declaration, `{ keys: [...] }`. Only `planChanges` checks that a new expiry lies in the future: an
 * existing key may have expired as declared.
 * @throws DeclarationError with all issues
 */
export function readDeclaration(value: unknown, catalog: Catalog): DeclaredKey[] {
  const reader = new Reader(catalog);
  const keys = reader.declaration(value);
  assertValidDeclaration(reader.issues);
  return keys;
}

/** Walks a declaration and collects its issues. If there are any, the keys that it returns are incomplete. */
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
    this.#reportUnknownFields(value, [], TOP_FIELDS);
    if (value['$schema'] !== undefined) this.#text(value['$schema'], ['$schema']);
    if (Array.isArray(value['keys'])) return value['keys'].map((key, index) => this.#key(key, ['keys', index]));
    const problem = 'keys' in value ? 'The field "keys" must be a list.' : 'The field "keys" is missing.';
    this.#report('keys' in value ? ['keys'] : [], `${problem} Write "keys: []" for none.`);
    return [];
  }

  #key(value: unknown, path: DeclarationPath): DeclaredKey {
    const key: DeclaredKey = { name: '', description: null, roles: [], permissions: [], expiresAt: null };
    if (!isRecord(value)) {
      this.#report(path, `A key must be a map with the field "name", and some of ${listOf(KEY_FIELDS.slice(1))}.`);
      return key;
    }
    this.#reportUnknownFields(value, path, KEY_FIELDS);
    const { name, description, roles, permissions, expiresAt, enabled } = value;
    if (name === undefined) this.#report(path, 'The field "name" is missing.');
    else key.name = this.#name(name, [...path, 'name']);
    if (description !== undefined && description !== null)
      key.description = this.#description(description, [...path, 'description']);
    key.roles = this.#list(roles, [...path, 'roles'], parseRoles);
    key.permissions = this.#list(permissions, [...path, 'permissions'], parsePermissions);
    for (const { message } of validateGrants(itemsOf(roles), itemsOf(permissions))) this.#report(path, message);
    if (expiresAt !== undefined && expiresAt !== null) key.expiresAt = this.#expiry(expiresAt, [...path, 'expiresAt']);
    if (typeof enabled === 'boolean') key.enabled = enabled;
    else if (enabled !== undefined) this.#report([...path, 'enabled'], 'The field "enabled" must be true or false.');
    return key;
  }

  #name(value: unknown, path: DeclarationPath): string {
    const text = this.#text(value, path);
    if (text === undefined) return '';
    const issue = validateName(text);
    if (issue) this.#report(path, issue.message);
    const name = normalizeName(text);
    if (!issue && this.#names.has(name)) this.#report(path, `"${name}" is declared more than once.`);
    this.#names.add(name);
    return name;
  }

  #description(value: unknown, path: DeclarationPath): string | null {
    const text = this.#text(value, path);
    const issue = text === undefined ? undefined : validateDescription(text);
    if (issue) this.#report(path, issue.message);
    return normalizeDescription(text);
  }

  #list<Item>(value: unknown, path: DeclarationPath, parse: typeof parseRoles | typeof parsePermissions): Item[] {
    if (value === undefined) return [];
    if (!Array.isArray(value)) {
      this.#report(path, `The field "${path.at(-1)}" must be a list.`);
      return [];
    }
    const items = value.flatMap((item: unknown, index) => {
      const text = this.#text(item, [...path, index]);
      const { values, issues } = text === undefined ? { values: [], issues: [] } : parse([text], this.#catalog);
      for (const { message } of issues) this.#report([...path, index], message);
      return values as Item[];
    });
    return [...new Set(items)];
  }

  #expiry(value: unknown, path: DeclarationPath): number | null {
    const text = this.#text(value, path);
    const instant = text === undefined ? undefined : readDate(text);
    if (text !== undefined && instant === undefined) this.#report(path, notADate(text));
    return instant ?? null;
  }

  #text(value: unknown, path: DeclarationPath): string | undefined {
    if (typeof value === 'string') return value;
    const what = typeof path.at(-1) === 'number' ? 'An item of this list' : `The field "${path.at(-1)}"`;
    this.#report(path, `${what} must be text. Quote it if YAML reads it as another type.`);
    return undefined;
  }

  #reportUnknownFields(value: object, path: DeclarationPath, fields: readonly string[]): void {
    for (const field of Object.keys(value)) {
      if (fields.includes(field)) continue;
      const message = `"${printable(field)}" is not a field. The fields here are ${listOf(fields)}.`;
      this.issues.push({ path: [...path, field], ofField: true, message });
    }
  }

  #report(path: DeclarationPath, message: string): void {
    this.issues.push({ path, message });
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The items to count where only their presence matters: a value that is not a list is an issue of its own. */
function itemsOf(value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}

/** `keys[3].name` */
function formatPath(path: DeclarationPath): string {
  const text = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${printable(step)}`)).join('');
  return text.slice(1) || 'declaration';
}
