import { ACTIONS, ROLES } from '../src/keys/permissions/catalog.ts';
import { KEY_FIELDS, TOP_FIELDS } from '../src/keys/apply/declaration.ts';
import { MAX_DESCRIPTION_LENGTH } from '../src/keys/key/description.ts';
import { DATE } from '../src/keys/time.ts';
import { MAX_NAME_LENGTH } from '../src/keys/key/name.ts';

/**
 * The JSON Schema (draft 2020-12) of the file that `apply` reads. It accepts a little more than the rules do: it knows
 * nothing of a host's resources, of the store, and of duplicate names.
 */
export function keysSchema(): string {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'API keys for "svc-api apikey apply"',
    type: 'object',
    required: ['keys'],
    additionalProperties: false,
    properties: inOrder(TOP_FIELDS, {
      $schema: { type: 'string', description: 'The location of this schema, for editors.' },
      keys: { type: 'array', description: 'The declared keys.', items: { $ref: '#/$defs/key' } },
    }),
    $defs: {
      key: {
        type: 'object',
        required: ['name'],
        additionalProperties: false,
        anyOf: ['roles', 'permissions'].map((list) => ({ required: [list], properties: { [list]: { minItems: 1 } } })),
        properties: inOrder(KEY_FIELDS, {
          name: {
            type: 'string',
            description: `Letters, digits and spaces, at most ${MAX_NAME_LENGTH} characters. Each name is unique.`,
            pattern: '^ *(?:\\p{L}\\p{M}*|\\p{Nd})(?:\\p{L}\\p{M}*|\\p{Nd}| )*$',
            maxLength: MAX_NAME_LENGTH,
          },
          description: {
            type: ['string', 'null'],
            description: `What the key is for, at most ${MAX_DESCRIPTION_LENGTH} characters on one line.`,
            pattern: '^[^\\p{Cc}\\p{Cs}\\u2028\\u2029]*$',
            maxLength: MAX_DESCRIPTION_LENGTH,
          },
          roles: {
            type: 'array',
            description: 'Roles to grant, case-insensitive.',
            items: { anyOf: [{ enum: ROLES }, { type: 'string', pattern: anyOf(ROLES) }] },
          },
          permissions: {
            type: 'array',
            description: 'Permissions to grant, each as RESOURCE:ACTION, case-insensitive.',
            items: {
              type: 'string',
              pattern: `^\\s*[A-Za-z][A-Za-z0-9_]{0,63}\\s*:${anyOf(ACTIONS).slice(1)}`,
              examples: ['DOCKER:READ_ANY', 'API_KEY:CREATE_OWN'],
            },
          },
          expiresAt: {
            type: ['string', 'null'],
            description:
              'When the key expires: an RFC 3339 date and time, such as 2030-12-31T23:59:59Z, within ten years.',
            pattern: DATE.source.replace(/^\^/, '^\\s*').replace(/\$$/, '\\s*$'),
          },
          enabled: {
            type: 'boolean',
            description: 'Whether the key is enabled. If left out, it stays as it is; a new key is enabled.',
          },
        }),
      },
    },
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

/** Properties in the order of the rules' fields. The types make sure that none is forgotten. */
function inOrder<Field extends string>(
  fields: readonly Field[],
  properties: Record<Field, object>,
): Record<string, object> {
  return Object.fromEntries(fields.map((field) => [field, properties[field]]));
}

/** A case-insensitive pattern for any of some words: JSON Schema has no flag for that. */
function anyOf(words: readonly string[]): string {
  const letters = (word: string) => word.replaceAll(/[A-Z]/g, (letter) => `[${letter}${letter.toLowerCase()}]`);
  return `^\\s*(?:${words.map(letters).join('|')})\\s*$`;
}
