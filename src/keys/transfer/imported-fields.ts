import type { Issue } from '../errors.ts';
import { nearest } from '../nearest.ts';
import { listOf } from '../text.ts';

/** What stands on a line that describes a key. Texts are as they were written. */
export interface ImportedFields {
  name: string;
  secret?: string;
  sha256?: string;
  description?: string;
  roles?: string[];
  permissions?: string[];
  expiresAt?: string;
  disabled?: boolean;
  id?: string;
  createdAt?: string;
  createdBy?: string;
  prefix?: string;
}

const KINDS = {
  text: { words: 'a text', fits: (value: unknown) => typeof value === 'string' },
  list: {
    words: 'a list of texts',
    fits: (value: unknown) => Array.isArray(value) && value.every((item) => typeof item === 'string'),
  },
  truth: { words: 'true or false', fits: (value: unknown) => typeof value === 'boolean' },
};

const FIELDS: Record<keyof ImportedFields, keyof typeof KINDS> = {
  name: 'text',
  secret: 'text',
  sha256: 'text',
  description: 'text',
  roles: 'list',
  permissions: 'list',
  expiresAt: 'text',
  disabled: 'truth',
  id: 'text',
  createdAt: 'text',
  createdBy: 'text',
  prefix: 'text',
};
const NAMES = Object.keys(FIELDS) as (keyof ImportedFields)[];
const SECRET_FIELDS: ReadonlySet<string> = new Set(['secret', 'sha256'] satisfies (keyof ImportedFields)[]);
/** What may be repeated of a name that is no field's: nothing that could be a secret. */
const HARMLESS = /^[A-Za-z]+(?:_[A-Za-z]+)*$/;
/** Shorter secrets may stand in a text by chance. */
const MIN_TELLING_LENGTH = 8;

/**
 * Reads a line that describes a key. No issue repeats a value, since any value may be a secret in the wrong place.
 * @returns the fields, where they can be looked at further, and what is wrong
 */
export function readFields(text: string): { fields?: ImportedFields; issues: Issue[] } {
  const object = readObject(text);
  if (!object)
    return { issues: [invalid('The line is no JSON object. Write each key as one object on a line of its own.')] };
  // What is null is not given: databases write it so.
  const given = Object.entries(object).filter(([, value]) => value !== null);
  const unknown = given.filter(([name]) => !isField(name)).map(([name]) => unknownField(name));
  const known = given.filter((entry): entry is [keyof ImportedFields, unknown] => isField(entry[0]));
  const issues = [...known.flatMap(wrongKind), ...missing(new Set(known.map(([name]) => name))), ...exposed(known)];
  return {
    ...(issues.length === 0 && { fields: Object.fromEntries(known) as unknown as ImportedFields }),
    issues: [...unknown, ...issues],
  };
}

function readObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isField(name: string): boolean {
  return Object.hasOwn(FIELDS, name);
}

function unknownField(name: string): Issue {
  const what = HARMLESS.test(name) && name.length <= 30 ? `"${name}" is` : 'The line has a field that is';
  const upper = nearest(
    name,
    NAMES.map((field) => field.toUpperCase()),
    1,
  )[0];
  const close = NAMES.find((field) => field.toUpperCase() === upper);
  return invalid(`${what} no field of a key. ${close ? `Did you mean ${close}?` : `The fields are ${listOf(NAMES)}.`}`);
}

function wrongKind([name, value]: [keyof ImportedFields, unknown]): Issue[] {
  const { words, fits } = KINDS[FIELDS[name]];
  return fits(value) ? [] : [invalid(`"${name}" must be ${words}.`)];
}

function missing(names: ReadonlySet<keyof ImportedFields>): Issue[] {
  const issues = names.has('name') ? [] : [invalid('The name is missing.')];
  if (names.has('secret') !== names.has('sha256')) return issues;
  const given = names.has('secret') ? 'Both are here' : 'Both are missing';
  return [
    ...issues,
    {
      code: 'SECRET_INVALID',
      message: `A key needs its secret or the secret's sha256, and only one of them. ${given}.`,
    },
  ];
}

/** Finds a secret, or its digest, that also stands in a field which is stored and shown. */
function exposed(known: readonly [keyof ImportedFields, unknown][]): Issue[] {
  const secrets = known.filter(([name]) => SECRET_FIELDS.has(name)).map(([, value]) => value);
  return known
    .filter(
      ([name, value]) =>
        !SECRET_FIELDS.has(name) && secrets.some((secret) => typeof secret === 'string' && holds(value, secret)),
    )
    .map(([name]) => ({
      code: 'SECRET_INVALID',
      message: `What is secret also stands in "${name}", which is shown openly. Take it out there.`,
    }));
}

function holds(value: unknown, secret: string): boolean {
  if (value === secret) return true;
  return secret.length >= MIN_TELLING_LENGTH && JSON.stringify(value).includes(JSON.stringify(secret).slice(1, -1));
}

function invalid(message: string): Issue {
  return { code: 'INPUT_INVALID', message };
}
