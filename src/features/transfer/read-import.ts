import { OPERATOR, violationsOfNew } from '../../keys/authorization/index.ts';
import {
  type ErrorCode,
  formatList,
  formatTime,
  hasFieldTwice,
  isRecord,
  type Issue,
  nearest,
  readDate,
  UUID,
} from '../../keys/basics/index.ts';
import type { IMPORT_WARNINGS } from './errors.ts';
import type { Parts } from '../../keys/changes/index.ts';
import {
  BARE_KEY,
  type Field,
  type JsonObject,
  type KeyValues,
  fixedFields,
  givenFields,
  IDENTITY_FIELDS,
  identityFields,
  identityOf,
  mapFields,
  namesOf,
  type NewKey,
  normalizeName,
  readExpiry,
  readFields,
  readNewFields,
  type StoredKey,
  validateChange,
  validateFields,
  validateName,
  validateNewKey,
} from '../../keys/key/index.ts';
import {
  createImportedId,
  createSecretlessId,
  digestSecret,
  hasOwnForm,
  isImportedId,
  isSecretlessId,
  publicIdOfPrefix,
  type RandomBytes,
  readSecret,
} from '../../keys/secret/index.ts';
import { readDigest } from './digest.ts';
import { type Line, linesOf, MAX_LINE_BYTES } from './lines.ts';

/** Dependencies of reading an import. */
interface ImportContext extends Pick<Parts, 'catalog' | 'randomBytes' | 'randomId'> {
  /** Milliseconds since 1970. */
  now: number;
}

/** A problem that prevents importing a line. */
export interface ImportProblem {
  /** Stable between versions. */
  code: ErrorCode;
  /** A sentence, without any secret. */
  message: string;
}

/** A warning about a key that can be imported. */
export interface ImportWarning {
  /** Stable between versions. */
  code: keyof typeof IMPORT_WARNINGS | 'NAME_CONFUSABLE';
  /** A sentence, without any secret. */
  message: string;
}

/** The values that a line can leave to the import. */
export type GeneratedField = 'id' | 'publicId' | 'createdAt';

/** A parsed line. */
export interface ImportLine {
  /** Its number, counted from 1, including empty lines. */
  line: number;
  /** The name of the key; null if it is invalid. */
  name: string | null;
  /** The id of the key, if the line gives one. */
  id?: string | undefined;
  /** The key, if it is valid by itself. */
  key?: StoredKey;
  /** The fields of the key that the line does not give. */
  generated?: readonly GeneratedField[];
  errors: readonly ImportProblem[];
  warnings: readonly ImportWarning[];
}

const UNREADABLE = {
  TOO_LONG: `The line is longer than ${MAX_LINE_BYTES / 1024 ** 2} MiB.`,
  NOT_UTF8: 'The line is not valid UTF-8.',
};

/** Lines read at a time. */
const PAGE_LINES = 500;

/** Reads keys from JSON lines, page by page. Empty lines are skipped. */
export async function* readImport(
  input: AsyncIterable<Uint8Array>,
  context: ImportContext,
): AsyncGenerator<ImportLine[]> {
  const ordered = { ...context, randomId: inOrder(context.randomId) };
  let page: ImportLine[] = [];
  for await (const line of linesOf(input)) {
    if ('text' in line && line.text.trim() === '') continue;
    page.push(readLine(line, ordered));
    if (page.length < PAGE_LINES) continue;
    yield page;
    page = [];
  }
  yield page;
}

/** Number of leading ids that are evenly spread; in larger imports, they get closer. */
const SPREAD_IDS = 2 ** 20;

/**
 * Ascending ids, random except for their first 32 bits: keys are listed in the order of lines, and indexes grow at
 * their end, which takes less space and time.
 */
function inOrder(randomId: () => string): () => string {
  let share = 0;
  return () => {
    const id = randomId();
    // From 0.5 to 1.5, so that those of another import have others in between.
    const step = 0.5 + Number.parseInt(id.slice(0, 3), 16) / 2 ** 12;
    share += ((1 - share) * step) / SPREAD_IDS;
    const start = Math.floor(share * 2 ** 32).toString(16);
    return start.padStart(8, '0') + id.slice(8);
  };
}

function readLine(line: Line, context: ImportContext): ImportLine {
  const base = { line: line.number, name: null, warnings: [] };
  if ('unreadable' in line) return { ...base, errors: [invalid(UNREADABLE[line.unreadable])] };
  const { fields, issues } = fieldsIn(line.text);
  return fields ? { ...base, ...readKey(fields, issues, context) } : { ...base, errors: issues };
}

function readKey(
  { expiresAt, ...fields }: ImportedFields,
  issues: readonly Issue[],
  { catalog, now, randomBytes, randomId }: ImportContext,
): Omit<ImportLine, 'line'> {
  const identity = identityOf(fields);
  const validate = identity ? validateChange : validateNewKey;
  const errors: ImportProblem[] = [...issues, ...validate(fields, catalog, now)].map(({ code, message }) => ({
    code,
    message,
  }));
  const secret = accept(readImportedSecret(fields, randomBytes));
  const expiry = accept(expiresAt === undefined ? null : readImportedExpiry(expiresAt, now));
  const id = accept(readId(fields.id, 'id'));
  const createdAt = accept(readCreation(fields.createdAt, now));
  const createdBy = accept(readId(fields.createdBy, 'createdBy'));
  errors.push(...validateFields(fixedFields, fields, catalog).map(({ code, message }) => ({ code, message })));
  const name = validateName(fields.name) ? null : normalizeName(fields.name);
  if (!secret || name === null || errors.length > 0) return { name, id, errors, warnings: [] };
  const key = {
    ...BARE_KEY,
    id: id ?? randomId(),
    ...readNewFields(fields, catalog),
    publicId: secret.publicId,
    createdAt: createdAt ?? now,
    createdBy: createdBy ?? null,
    expiresAt: expiry ?? null,
    disabledAt: fields.disabled ? now : null,
    ...readFields(fixedFields, fields, catalog),
    ...(identity && { [identity.name]: identity.field.readStored(identity.value) }),
    digest: secret.digest,
  };
  const generated: GeneratedField[] = [
    ...(id === undefined ? ['id' as const] : []),
    ...(secret.hasNewPublicId ? ['publicId' as const] : []),
    ...(fields.createdAt === undefined ? ['createdAt' as const] : []),
  ];
  // The policy is for what callers create.
  const violations = identity ? [] : violationsOfNew(key, { caller: OPERATOR, catalog, now });
  const forbidden = violations.map((message): ImportProblem => ({ code: 'POLICY_VIOLATED', message }));
  return { name, id, key, generated, errors: forbidden, warnings: warningsOf(key, secret, now) };

  function accept<Value>(read: Value | Issue): Value | undefined {
    if (!isIssue(read)) return read;
    errors.push(read);
    return undefined;
  }
}

/** The expiry of an imported key. Unlike that of a new key, it can be in the past. */
function readImportedExpiry(text: string, now: number): number | null | Issue {
  const instant = readDate(text);
  return instant !== undefined && instant <= now ? instant : readExpiry({ expiresAt: text }, now);
}

function readCreation(text: string | undefined, now: number): number | Issue {
  if (text === undefined) return now;
  const instant = readDate(text);
  // A cursor of the list cannot hold times before 1970.
  return instant === undefined || instant < 0
    ? invalid('"createdAt" is not an RFC 3339 date and time from 1970 on, such as 2025-12-31T23:59:59Z.')
    : instant;
}

function readId(text: string | undefined, field: string): string | undefined | Issue {
  const id = text?.toLowerCase();
  if (id === undefined || UUID.test(id)) return id;
  return invalid(`"${field}" is not a UUID. Leave it out for a key that was made elsewhere.`);
}

function warningsOf({ expiresAt }: StoredKey, { guessable }: ImportedSecret, now: number): ImportWarning[] {
  const warnings: ImportWarning[] = [];
  if (guessable)
    warnings.push({
      code: 'SECRET_GUESSABLE',
      message: 'The secret is so short that it could be guessed. Rotate the key soon.',
    });
  if (expiresAt !== null && expiresAt <= now)
    warnings.push({ code: 'EXPIRED', message: `It expired at ${formatTime(expiresAt)}.` });
  return warnings;
}

function isIssue(value: unknown): value is Issue {
  return typeof value === 'object' && value !== null && 'message' in value;
}

function invalid(message: string): Issue {
  return { code: 'INPUT_INVALID', message };
}

/** Kinds of fields of a line: those of identities are called as their fields. */
interface KindValues extends Identities {
  string: string;
  number: number;
  list: string[];
  numbers: number[];
  json: JsonObject;
  boolean: boolean;
}

type Identities = { [Name in keyof typeof identityFields]: NonNullable<KeyValues[Name]> };

const KINDS: Record<keyof KindValues, { words: string; fits: (value: unknown) => boolean }> = {
  string: { words: 'a string', fits: (value) => typeof value === 'string' },
  number: { words: 'a number', fits: (value) => typeof value === 'number' },
  list: {
    words: 'a list of strings',
    fits: (value) => Array.isArray(value) && value.every((item) => typeof item === 'string'),
  },
  numbers: {
    words: 'a list of numbers',
    fits: (value) => Array.isArray(value) && value.every((item) => typeof item === 'number'),
  },
  json: { words: 'a JSON object', fits: isRecord },
  boolean: { words: 'true or false', fits: (value) => typeof value === 'boolean' },
  ...kindsOf((field) => ({
    words: `a map of ${formatList(Object.keys(field.parts).map((part) => `"${part}"`))}, each a text of up to 255 characters`,
    fits: (value: unknown) => field.readStored(value) !== undefined,
  })),
};

const FIELDS = {
  ...mapFields(givenFields, kindOf),
  ...mapFields(fixedFields, kindOf),
  secret: 'string',
  sha256: 'string',
  expiresAt: 'string',
  disabled: 'boolean',
  id: 'string',
  createdAt: 'string',
  createdBy: 'string',
  prefix: 'string',
  ...kindsOf((_, name) => name as keyof typeof identityFields),
} as const satisfies Record<string, keyof KindValues>;

/** A kind for each identity. */
function kindsOf<Kind>(
  map: (field: (typeof IDENTITY_FIELDS)[number][1], name: string) => Kind,
): Record<keyof typeof identityFields, Kind> {
  return Object.fromEntries(IDENTITY_FIELDS.map(([name, field]) => [name, map(field, name)])) as never;
}

function kindOf({ form, numbers }: Pick<Field<unknown>, 'form' | 'numbers'>): keyof KindValues {
  if (form === 'list' && numbers) return 'numbers';
  return form === 'text' ? 'string' : form;
}

/** The fields of a line that describes a key, as they were written. */
type ImportedFields = Pick<NewKey, keyof typeof givenFields> & {
  [Name in Exclude<keyof typeof FIELDS, keyof typeof givenFields>]?: KindValues[(typeof FIELDS)[Name]];
};

const NAMES = Object.keys(FIELDS) as (keyof ImportedFields)[];
const SECRET_FIELDS: ReadonlySet<string> = new Set(['secret', 'sha256'] satisfies (keyof ImportedFields)[]);
/** Unknown field names that a message can repeat, because they cannot be a secret. */
const SHOWABLE_NAME = /^[A-Za-z]+(?:_[A-Za-z]+)*$/;
/** Shorter secrets can occur in a text by chance. */
const MIN_EXPOSED_LENGTH = 8;

/**
 * Parses a line that describes a key. No issue repeats a value, because it could be a misplaced secret.
 * @returns the fields if they can be checked further, and the issues
 */
function fieldsIn(text: string): { fields?: ImportedFields; issues: Issue[] } {
  const object = readObject(text);
  if (!object)
    return { issues: [invalid('The line is not a JSON object. Write each key as one object on a line of its own.')] };
  if (hasFieldTwice(text, object)) return { issues: [invalid('The line has a repeated field. Keep one of them.')] };
  // Databases write null for missing values.
  const given = Object.entries(object).filter(([, value]) => value !== null);
  const others = given.filter(([name]) => !isField(name));
  const own = given.filter((entry): entry is [keyof ImportedFields, unknown] => isField(entry[0]));
  // A misspelled field is read as the one that was meant, so that nothing is said that follows from it.
  const meant = others.flatMap(([name, value]): [keyof ImportedFields, unknown][] =>
    (nearest(name, NAMES, 1) as (keyof ImportedFields)[]).flatMap((close) =>
      own.some(([each]) => each === close) ? [] : [[close, value]],
    ),
  );
  const read = [...own, ...meant];
  const fitting = read.filter((entry) => wrongKind(entry).length === 0);
  const names = new Set(read.map(([name]) => name));
  const issues = [...own.flatMap(wrongKind), ...missing(names), ...exposed(fitting)];
  return {
    ...(issues.length === 0 &&
      fitting.length === read.length && { fields: Object.fromEntries(read) as unknown as ImportedFields }),
    issues: [...others.map(([name]) => unknownField(name)), ...issues],
  };
}

function readObject(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

function isField(name: string): boolean {
  return Object.hasOwn(FIELDS, name);
}

function unknownField(name: string): Issue {
  const isShowable = SHOWABLE_NAME.test(name) && name.length <= 30;
  const problem = isShowable ? `"${name}" is not a field of a key.` : 'The line has an unknown field.';
  const [close] = nearest(name, NAMES, 1);
  return invalid(`${problem} ${close ? `Did you mean ${close}?` : `The fields are ${formatList(NAMES)}.`}`);
}

function wrongKind([name, value]: [keyof ImportedFields, unknown]): Issue[] {
  const { words, fits } = KINDS[FIELDS[name]];
  return fits(value) ? [] : [invalid(`"${name}" must be ${words}.`)];
}

function missing(names: ReadonlySet<keyof ImportedFields>): Issue[] {
  const issues = names.has('name') ? [] : [invalid('The name is missing.')];
  const hasSecret = names.has('secret') || names.has('sha256');
  const identity = namesOf(identityFields).find((name) => names.has(name));
  const message = `A key with "${identity}" has no secret. Leave out "secret" and "sha256".`;
  if (identity !== undefined) return hasSecret ? [...issues, issue(message)] : issues;
  if (names.has('secret') !== names.has('sha256')) return issues;
  const given = names.has('secret') ? 'Both are given' : 'Both are missing';
  return [
    ...issues,
    {
      code: 'SECRET_INVALID',
      message: `A key needs either its secret or the secret's sha256. ${given}.`,
    },
  ];
}

/** Finds a secret or digest that is repeated in a field that is stored and shown. */
function exposed(fitting: readonly [keyof ImportedFields, unknown][]): Issue[] {
  const secrets = fitting.filter(([name]) => SECRET_FIELDS.has(name)).map(([, value]) => value);
  return fitting
    .filter(
      ([name, value]) =>
        !SECRET_FIELDS.has(name) && secrets.some((secret) => typeof secret === 'string' && holds(value, secret)),
    )
    .map(([name]) => ({
      code: 'SECRET_INVALID',
      message: `The secret or its digest also appears in "${name}", which is shown openly. Remove it there.`,
    }));
}

function holds(value: unknown, secret: string): boolean {
  if (value === secret) return true;
  return secret.length >= MIN_EXPOSED_LENGTH && JSON.stringify(value).includes(JSON.stringify(secret).slice(1, -1));
}

/** Characters and length that an `Authorization: Bearer` header can carry, within the limits of servers and proxies. */
const SENDABLE = /^[\x21-\x7e]{1,8000}$/;
/** A shorter secret could be guessed. */
const MIN_SECRET_LENGTH = 20;

/** The stored parts of an imported secret. */
interface ImportedSecret {
  publicId: string;
  /** The line has no public id. */
  hasNewPublicId: boolean;
  /** See `digestSecret`. */
  digest: string;
  /** The secret is so short that it could be guessed. */
  guessable: boolean;
}

/** Reads the secret of an imported key, or its digest. A secret in our own format keeps its public id. */
function readImportedSecret(
  { secret, sha256, prefix, ...fields }: ImportedFields,
  randomBytes: RandomBytes,
): ImportedSecret | Issue {
  const prefixed = publicIdOfPrefix(prefix ?? '');
  if (prefix !== undefined && prefixed === undefined)
    return issue(
      '"prefix" is not an svc-api prefix, such as svc_0a1B2c3D4e5F_…. Leave it out for a key that was made elsewhere.',
    );
  const identity = identityOf(fields);
  if (prefixed !== undefined && isSecretlessId(prefixed) !== (identity !== undefined))
    return issue(
      identity
        ? `"prefix" belongs to a key with a secret, and "${identity.name}" to one without. Leave out "prefix".`
        : '"prefix" belongs to a key without a secret. Leave it out.',
    );
  const hasNewPublicId = prefixed === undefined;
  if (identity) {
    const publicId = prefixed ?? createSecretlessId(randomBytes);
    return { publicId, hasNewPublicId, digest: identity.field.digest(identity.value), guessable: false };
  }
  if (secret === undefined) {
    const digest = readDigest(sha256 ?? '');
    if (digest === undefined) return issue('"sha256" is not a SHA-256 in hex, base64 or base64url.');
    return { publicId: prefixed ?? createImportedId(randomBytes), hasNewPublicId, digest, guessable: false };
  }
  if (!SENDABLE.test(secret))
    return issue(
      'The secret must be 1 to 8,000 visible ASCII characters without spaces: a request can carry no other.',
    );
  const own = readSecret(secret)?.publicId;
  if (own === undefined && hasOwnForm(secret))
    return issue('The secret has the form of an svc-api key, but its checksum is wrong: it was mistyped.');
  if (prefixed !== undefined && (own === undefined ? !isImportedId(prefixed) : prefixed !== own))
    return issue('"prefix" does not belong to the secret. Leave it out.');
  return {
    publicId: own ?? prefixed ?? createImportedId(randomBytes),
    hasNewPublicId: own === undefined && hasNewPublicId,
    digest: digestSecret(secret),
    guessable: secret.length < MIN_SECRET_LENGTH,
  };
}

function issue(message: string): Issue {
  return { code: 'SECRET_INVALID', message };
}
