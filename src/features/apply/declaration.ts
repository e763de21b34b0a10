import {
  DeclarationError,
  type DocumentIssue,
  type DocumentPath,
  formatList,
  formatTime,
  isRecord,
  type Issue,
  mapYielding,
  readDate,
  readDuration,
} from '../../keys/basics/index.ts';
import {
  type ApiKey,
  type FieldValues,
  type GivenField,
  givenFields,
  KEY_FIELDS,
  mapFields,
  NOTHING_GIVEN,
  notADate,
  validateExpiry,
  validateGrants,
} from '../../keys/key/index.ts';
import type { Catalog } from '../../keys/permissions/index.ts';
import { DocumentReader } from './document-reader.ts';
import { readSchedule, type RotationSchedule } from './rotation-schedule.ts';

/** A key as it is declared. An omitted field means none, except that `enabled` then stays as it is. */
export interface DeclaredKey
  extends
    Pick<ApiKey, 'name' | 'description' | 'roles' | 'permissions' | 'expiresAt'>,
    Partial<Omit<FieldValues, 'description'>> {
  /** The key is accepted. Default for a new key: true. */
  enabled?: boolean;
  /** Lifetime of each secret, instead of `expiresAt`: a duration such as `30d`. */
  expiresIn?: string;
  /** Schedule for replacing its secret. */
  rotate?: RotationSchedule;
}

/** The fields of a declared key. */
export const DECLARED_FIELDS = [...KEY_FIELDS, 'expiresIn', 'rotate'] as const;
/** Fields of `rotate`. */
export const SCHEDULE_FIELDS = ['every', 'grace'] as const;

/** Problems of the expiry and the rotation of a declared key, with their paths. */
function scheduleIssues({
  expiresAt,
  expiresIn,
  rotate,
}: Pick<DeclaredKey, 'expiresAt' | 'expiresIn' | 'rotate'>): { path: DocumentPath; issue: Issue }[] {
  const end = expiresAt === null ? {} : { expiresAt: formatTime(expiresAt) };
  const ends = expiresIn === undefined ? [] : validateExpiry({ expiresIn, ...end }, 0);
  const { every, issues } = rotate ? readSchedule(rotate) : { every: 0, issues: [] };
  const all = [
    ...ends.map((issue) => ({ path: ['expiresIn'], issue })),
    ...issues.map((issue) => ({ path: ['rotate', issue.field!], issue })),
  ];
  if (all.length > 0 || expiresIn === undefined || every < readDuration(expiresIn)!) return all;
  const message = `The key would expire before it is rotated. Choose less than ${expiresIn.trim()}, or a later expiry.`;
  return [{ path: ['rotate', 'every'], issue: { code: 'EXPIRY_INVALID', message, field: 'every' } }];
}

/** The fields of a declaration; `$schema` names its JSON Schema for editors. */
export const TOP_FIELDS = ['keys', '$schema'] as const;

/** Throws a `DeclarationError` with all the issues, if there are any. */
export function assertValidDeclaration(issues: readonly DocumentIssue[]): void {
  if (issues.length > 0) throw new DeclarationError(issues);
}

/**
 * Reads a parsed declaration, `{ keys: [...] }`. `planChanges` checks later that a new expiry is in the future, since
 * an existing key may have expired as declared.
 * @throws DeclarationError with all issues
 */
export async function readDeclaration(value: unknown, catalog: Catalog): Promise<readonly DeclaredKey[]> {
  const reader = new DeclarationReader(catalog);
  const keys = await reader.declaration(value);
  assertValidDeclaration(reader.ownIssues);
  return keys;
}

/** Walks a declaration and collects its issues. If there are any, the keys that it returns are incomplete. */
class DeclarationReader extends DocumentReader {
  readonly #catalog: Catalog;
  readonly #names = new Set<string>();

  constructor(catalog: Catalog) {
    super();
    this.#catalog = catalog;
  }

  async declaration(value: unknown): Promise<DeclaredKey[]> {
    if (!isRecord(value)) {
      this.report([], 'The declaration must be a map with the field "keys", a list of keys.');
      return [];
    }
    const { keys, $schema } = this.knownFields(value, [], TOP_FIELDS);
    if ($schema !== undefined) this.text($schema, ['$schema']);
    if (Array.isArray(keys)) return mapYielding(keys.entries(), ([index, key]) => this.#key(key, ['keys', index]));
    const remedy = ' Write "keys: []" for none.';
    if (keys === undefined) this.missing([], 'keys', remedy);
    else this.report(['keys'], `The field "keys" must be a list.${remedy}`);
    return [];
  }

  #key(value: unknown, path: DocumentPath): DeclaredKey {
    const key: DeclaredKey = { ...NOTHING_GIVEN, expiresAt: null };
    if (!isRecord(value)) {
      const others = formatList(DECLARED_FIELDS.slice(1));
      this.report(path, `A key must be a map with the field "name", and some of ${others}.`);
      return key;
    }
    const fields = this.knownFields(value, path, DECLARED_FIELDS);
    const { name, roles, permissions, expiresAt, expiresIn, rotate, enabled } = fields;
    if (name === undefined) this.missing(path, 'name');
    Object.assign(key, this.#given(fields, path));
    if (this.#names.has(key.name)) this.report([...path, 'name'], `"${key.name}" is declared more than once.`);
    else if (key.name !== '') this.#names.add(key.name);
    if (!this.mayHaveMeant(path))
      for (const { message } of validateGrants(itemsOf(roles), itemsOf(permissions))) this.report(path, message);
    if (expiresAt !== undefined && expiresAt !== null) key.expiresAt = this.#expiry(expiresAt, [...path, 'expiresAt']);
    if (expiresIn !== undefined) this.#set(key, 'expiresIn', this.text(expiresIn, [...path, 'expiresIn']));
    if (rotate !== undefined) this.#set(key, 'rotate', this.#schedule(rotate, [...path, 'rotate']));
    for (const { path: at, issue } of scheduleIssues(key)) this.report([...path, ...at], issue.message);
    if (typeof enabled === 'boolean') key.enabled = enabled;
    else if (enabled !== undefined) this.report([...path, 'enabled'], 'The field "enabled" must be true or false.');
    return key;
  }

  #given(given: Readonly<Record<string, unknown>>, path: DocumentPath): Partial<DeclaredKey> {
    return mapFields(givenFields, (field, name) =>
      given[name] === undefined ? field.none : this.#value(field, given[name], [...path, name]),
    );
  }

  #value(field: GivenField<unknown>, value: unknown, path: DocumentPath): unknown {
    const isNone = value === null && field.none === null;
    if (field.form === 'list' && !isNone) {
      // Only `validate` knows that a list must not be empty.
      const parse = (items: readonly unknown[]) =>
        field.parse && items.length > 0
          ? field.parse(items as readonly string[], this.#catalog)
          : {
              values: field.read(items, this.#catalog) as readonly unknown[],
              issues: field.validate(items, this.#catalog),
            };
      return this.parsedList(value, path, parse, field.numbers === undefined);
    }
    if (field.form === 'text' && !isNone && this.text(value, path) === undefined) return field.none;
    const issues = field.validate(value, this.#catalog);
    for (const { message } of issues) this.report(path, message);
    return issues.length > 0 ? field.none : field.read(value, this.#catalog);
  }

  #set<Field extends 'expiresIn' | 'rotate'>(key: DeclaredKey, field: Field, value: DeclaredKey[Field] | undefined) {
    if (value !== undefined) key[field] = value;
  }

  #schedule(value: unknown, path: DocumentPath): RotationSchedule | undefined {
    if (!isRecord(value)) return this.report(path, 'The field "rotate" must be a map with the fields every and grace.');
    const { every, grace } = this.knownFields(value, path, SCHEDULE_FIELDS);
    if (every === undefined) return this.missing(path, 'every');
    const age = this.text(every, [...path, 'every']);
    const lasts = grace === undefined ? undefined : this.text(grace, [...path, 'grace']);
    return age === undefined ? undefined : { every: age, ...(lasts !== undefined && { grace: lasts }) };
  }

  #expiry(value: unknown, path: DocumentPath): number | null {
    const text = this.text(value, path);
    const instant = text === undefined ? undefined : readDate(text);
    if (text !== undefined && instant === undefined) this.report(path, notADate(text));
    return instant ?? null;
  }
}

/** The items to count where only their presence matters: a value that is not a list is an issue of its own. */
function itemsOf(value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}
