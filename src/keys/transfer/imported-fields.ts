import type { Issue } from '../errors.ts';
import { nearest } from '../nearest.ts';
import { listOf } from '../text.ts';

/** The fields of a line that describes a key, as they were written. */
export interface ImportedFields {
  name: string;
  secret?: string;
  sha256?: string;
  description?: string;
  roles?: string[];
  permissions?: string[];
  limits?: string[];
  allowFrom?: string[];
  expiresAt?: string;
  disabled?: boolean;
  id?: string;
  createdAt?: string;
  createdBy?: string;
  prefix?: string;
}

const KINDS = {
  string: { words: 'a string', fits: (value: unknown) => typeof value === 'string' },
  list: {
    words: 'a list of strings',
    fits: (value: unknown) => Array.isArray(value) && value.every((item) => typeof item === 'string'),
  },
  boolean: { words: 'true or false', fits: (value: unknown) => typeof value === 'boolean' },
};

const FIELDS: Record<keyof ImportedFields, keyof typeof KINDS> = {
  name: 'string',
  secret: 'string',
  sha256: 'string',
  description: 'string',
  roles: 'list',
  permissions: 'list',
  limits: 'list',
  allowFrom: 'list',
  expiresAt: 'string',
  disabled: 'boolean',
  id: 'string',
  createdAt: 'string',
  createdBy: 'string',
  prefix: 'string',
};
const NAMES = Object.keys(FIELDS) as (keyof ImportedFields)[];
const SECRET_FIELDS: ReadonlySet<string> = new Set(['secret', 'sha256'] satisfies (keyof ImportedFields)[]);
/** Unknown field names that may be repeated in a message: none that could be a secret. */
const SHOWABLE_NAME = /^[A-Za-z]+(?:_[A-Za-z]+)*$/;
/** Shorter secrets may occur in a text by chance. */
const MIN_EXPOSED_LENGTH = 8;

/**
 * Parses a line that describes a key. No issue repeats a value: any value may be a misplaced secret.
 * @returns the fields, if they can be validated further, and the issues
 */
export function readFields(text: string): { fields?: ImportedFields; issues: Issue[] } {
  const object = readObject(text);
  if (!object)
    return { issues: [invalid('The line is not a JSON object. Write each key as one object on a line of its own.')] };
  // Databases write null for what is not given.
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
  return invalid(`${problem} ${close ? `Did you mean ${close}?` : `The fields are ${listOf(NAMES)}.`}`);
}

function wrongKind([name, value]: [keyof ImportedFields, unknown]): Issue[] {
  const { words, fits } = KINDS[FIELDS[name]];
  return fits(value) ? [] : [invalid(`"${name}" must be ${words}.`)];
}

function missing(names: ReadonlySet<keyof ImportedFields>): Issue[] {
  const issues = names.has('name') ? [] : [invalid('The name is missing.')];
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

function invalid(message: string): Issue {
  return { code: 'INPUT_INVALID', message };
}
