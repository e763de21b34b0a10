import { DURATION, limitWith, PERMISSION, SCHEMA_FIELD } from '../../config/patterns.ts';
import { DATE, LIMIT_UNITS } from '../../keys/basics/index.ts';
import {
  type Field,
  type FieldName,
  labelFields,
  mapFields,
  MAX_NAME_LENGTH,
  MAX_NETWORKS,
  restrictionFields,
} from '../../keys/key/index.ts';
import { ROLES } from '../../keys/permissions/index.ts';
import { DECLARED_FIELDS, SCHEDULE_FIELDS, TOP_FIELDS } from './declaration.ts';

/** A limit of a key, including budgets. */
const KEY_LIMIT = limitWith(LIMIT_UNITS, ['100/m', '10000/month', '1000/budget', '1/uses']);

const TAG_KEY_PATTERN = '^\\s*[\\p{L}\\p{N}][\\p{L}\\p{M}\\p{N}._/-]*\\s*';
/** At least one visible character, and no comma. */
const TAG_VALUE_PATTERN = '[^\\p{Cc}\\p{Cs}\\u2028\\u2029,]*[^\\p{Cc}\\p{Cs},\\s][^,]*';

const NETWORK_PATTERN = '^\\s*[0-9A-Fa-f.:]+(?:/\\d{1,3})?\\s*$';

/** The rules of some fields, as closely as a JSON Schema can express them. */
const CLOSER: { [Name in FieldName]?: object } = {
  tags: {
    items: {
      type: 'string',
      pattern: `${TAG_KEY_PATTERN}=${TAG_VALUE_PATTERN}$`,
      examples: ['env=prod', 'team=payments'],
    },
  },
  limits: { maxItems: LIMIT_UNITS.length, items: KEY_LIMIT },
  allowFrom: {
    maxItems: MAX_NETWORKS,
    items: { type: 'string', pattern: NETWORK_PATTERN, examples: ['10.0.0.0/8', '2001:db8::/32'] },
  },
};

function schemaOf({ schema, help }: Field<unknown>, name: FieldName): object {
  return { description: help, ...schema, ...CLOSER[name] };
}

/**
 * The JSON Schema (draft 2020-12) of the file for `apply`. It accepts a little more than the rules do: it does not know
 * the installation's own resources and roles, the store, and duplicate names.
 */
export function keysSchema(): object {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'API keys for "svc-api apikey apply"',
    type: 'object',
    required: ['keys'],
    additionalProperties: false,
    properties: inOrder(TOP_FIELDS, {
      $schema: SCHEMA_FIELD,
      keys: { type: 'array', description: 'The declared keys.', items: { $ref: '#/$defs/key' } },
    }),
    $defs: {
      key: {
        type: 'object',
        required: ['name'],
        additionalProperties: false,
        anyOf: ['roles', 'permissions'].map((list) => ({ required: [list], properties: { [list]: { minItems: 1 } } })),
        properties: inOrder(DECLARED_FIELDS, {
          name: {
            type: 'string',
            description: `Letters, digits and spaces, at most ${MAX_NAME_LENGTH} characters. Each name is unique.`,
            pattern: '^ *(?:\\p{L}\\p{M}*|\\p{Nd})(?:\\p{L}\\p{M}*|\\p{Nd}| )*$',
            maxLength: MAX_NAME_LENGTH,
          },
          ...mapFields(labelFields, schemaOf),
          roles: {
            type: 'array',
            description: 'Roles to grant, case-insensitive.',
            // An installation's own roles are in its configuration.
            items: { anyOf: [{ enum: ROLES }, { type: 'string', pattern: '^\\s*[A-Za-z][A-Za-z0-9_]{0,63}\\s*$' }] },
          },
          permissions: {
            type: 'array',
            description: 'Permissions to grant, each as RESOURCE:ACTION, case-insensitive.',
            items: {
              ...PERMISSION,
              examples: ['DOCKER:READ_ANY', 'API_KEY:CREATE_OWN'],
            },
          },
          ...mapFields(restrictionFields, schemaOf),
          expiresAt: {
            type: ['string', 'null'],
            description:
              'When the key expires: an RFC 3339 date and time, such as 2030-12-31T23:59:59Z, within ten years.',
            pattern: DATE.source.replace(/^\^/, '^\\s*').replace(/\$$/, '\\s*$'),
          },
          expiresIn: {
            ...DURATION,
            description:
              'How long the key lives from when it gets a secret, in place of expiresAt. It is renewed then.',
          },
          rotate: {
            type: 'object',
            description: 'When the secret of the key is replaced.',
            required: ['every'],
            additionalProperties: false,
            properties: inOrder(SCHEDULE_FIELDS, {
              every: { ...DURATION, description: 'The age at which it is replaced.' },
              grace: {
                type: 'string',
                pattern: '^\\s*(?:[0-9]{1,9}[smhdw]|0+)\\s*$',
                description: 'How long the previous one works once the new one is first used. Default: 24h.',
              },
            }),
          },
          enabled: {
            type: 'boolean',
            description: 'Whether the key is enabled. If left out, it stays as it is; a new key is enabled.',
          },
        }),
      },
    },
  };
}

/** Properties in the order of the rules' fields. The types make sure that none is missing. */
function inOrder<Name extends string>(
  names: readonly Name[],
  properties: Record<Name, object>,
): Record<string, object> {
  return Object.fromEntries(names.map((name) => [name, properties[name]]));
}
