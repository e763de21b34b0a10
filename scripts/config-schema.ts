import {
  CLIENT_FIELDS,
  CLIENTS_FIELDS,
  REFRESH_FIELDS,
  INTROSPECTION,
  MAX_CLIENTS,
  AUDIT_FIELDS,
  NATS_FIELDS,
  NOTICES_FIELDS,
  SERVER_FIELDS,
  SIGN_IN,
  TLS_FIELDS,
} from '../src/config/read-server.ts';
import { BASIC_FIELDS, CREDENTIAL_FIELDS, MAX_UPSTREAMS, UPSTREAM_FIELDS } from '../src/config/read-upstreams.ts';
import {
  ALGORITHMS,
  ISSUER_FIELDS,
  MAX_RULES,
  MAX_VALUES,
  PRESETS,
  RULE_FIELDS,
} from '../src/config/read-federation.ts';
import { MAX_GROUPS, OIDC_FIELDS, PEOPLE_FIELDS, SECRET_FIELDS } from '../src/config/read-people.ts';
import {
  LIMITS_FIELDS,
  MAX_COST,
  MAX_DECLARED,
  MCP_FIELDS,
  RESOURCE_FIELDS,
  ROUTE_FIELDS,
} from '../src/config/read-access.ts';
import { CONFIG_FIELDS } from '../src/config/load-config.ts';
import { MAX_REFUSED_OFTEN, NOTICE_TYPES } from '../src/keys/feed/notice.ts';
import { OTHER_ORIGIN } from '../src/keys/basics/origin.ts';
import { PUBLIC_URL } from '../src/keys/basics/public-url.ts';
import { NATS_NAME_FORM, SERVER_NUMBERS } from '../src/config/config.ts';
import { CONSENT_MODES, NAME, ROLES } from '../src/keys/permissions/catalog.ts';
import { MAX_KEYS_PER_CREATOR, POLICY_RULES } from '../src/keys/permissions/policy.ts';
import { CLIENT_ID, MAX_CLIENT_NAME_LENGTH, OWN_CLIENT } from '../src/keys/consent/clients.ts';
import { DURATION, inOrder, LIMIT, PERMISSION, SCHEMA_FIELD } from './schema-parts.ts';

const name = { type: 'string', pattern: NAME.source };
const permissions = { type: 'array', minItems: 1, items: PERMISSION };

const credentials = { type: 'boolean', description: 'Whether it holds credentials, which keeps it out of VIEWER.' };
const header = { type: 'string', pattern: '^[0-9A-Za-z]+(?:-[0-9A-Za-z]+)*$', examples: ['X-Api-Key'] };
const PATH = { type: 'string', minLength: 1 };
const ORIGINS = [
  { const: '*' },
  { type: 'string', pattern: '^https?://[^/?#@\\s]+$' },
  { type: 'string', pattern: OTHER_ORIGIN.source },
];
const PATTERNS = { type: 'array', minItems: 1, items: { type: 'string', minLength: 1 } };
const ROUTE = {
  host: { type: 'string', description: 'A host, *.example.org for its subdomains, or * for all.' },
  path: { type: 'string', description: 'Segments: text, * for one, and ** for the rest.', pattern: '^/' },
  methods: {
    type: 'array',
    description: 'Default: all methods.',
    minItems: 1,
    items: { type: 'string', pattern: '^[^a-z]+$', examples: ['GET', 'HEAD', 'POST'] },
  },
  allow: {
    description: 'A permission, a list of which all are required, any of a list, any valid key, or everybody.',
    anyOf: [{ enum: ['key', 'open'] }, PERMISSION, permissions, mapOf(['any'], { any: permissions }, ['any'])],
  },
  resource: {
    type: 'string',
    description: 'In place of allow: READ_ANY, CREATE_ANY, UPDATE_ANY or DELETE_ANY on it, by the method.',
    examples: ['GRAFANA'],
  },
  mcp: {
    description: 'What its keys may use of an MCP server: names, with * for any text.',
    minProperties: 1,
    ...mapOf(MCP_FIELDS, { tools: PATTERNS, resources: PATTERNS, prompts: PATTERNS }),
  },
  limit: { ...LIMIT, description: 'How many of its requests each key may make; with mcp, how many calls.' },
  cost: {
    type: 'integer',
    minimum: 1,
    maximum: MAX_COST,
    description: 'How much one counts against limits and budgets. Default: 1.',
  },
  to: {
    type: 'string',
    description: 'The upstream, by its name, that guard passes requests on to.',
    examples: ['wiki'],
  },
  'cross-site': { const: 'allowed', description: 'Pages of other sites may send what has a key by Basic.' },
  preflight: { const: 'open', description: 'CORS preflights pass without a key.' },
  observe: { const: true, description: 'Lets pass what it would refuse, and notes that.' },
};

const FILE = { type: 'string', minLength: 1, description: 'From the folder of this file.' };
const SENT = {
  type: 'object',
  minProperties: 1,
  additionalProperties: mapOf(
    CREDENTIAL_FIELDS,
    {
      file: FILE,
      scheme: {
        type: 'string',
        pattern: '^[A-Za-z][A-Za-z0-9-]*$',
        description: 'What stands before it.',
        examples: ['Bearer'],
      },
    },
    ['file'],
  ),
};
const UPSTREAM_URL = {
  type: 'string',
  pattern: '^[Hh][Tt][Tt][Pp](?:[Ss]|\\+[Uu][Nn][Ii][Xx])?://',
  examples: ['http://127.0.0.1:3000', 'https://grafana.internal', 'http+unix:///run/app.sock'],
};
const UPSTREAM = {
  url: UPSTREAM_URL,
  send: { ...SENT, description: 'Headers that it gets with the content of files, in place of what callers send.' },
  query: { ...SENT, description: 'Parameters of the query that it gets, likewise.' },
  basic: {
    description: 'The user and the password that it gets by Basic.',
    ...mapOf(
      BASIC_FIELDS,
      { user: { type: 'string', pattern: '^[^:]*$' }, password: mapOf(['file'], { file: FILE }, ['file']) },
      BASIC_FIELDS,
    ),
  },
  rewriteHost: { type: 'boolean', description: "Send it its own address as the Host, in place of the client's." },
  passHeaders: {
    type: 'array',
    description:
      'Headers in which proxies in "trust" tell it who makes a request. All others of that kind are removed.',
    items: { type: 'string', pattern: '^[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*$', examples: ['X-Forwarded-User'] },
  },
  ranges: {
    type: 'boolean',
    description: 'Let callers ask for parts of answers, in which its credentials are not found.',
  },
};

const CLIENT = {
  id: { type: 'string', description: 'Its client_id.', pattern: CLIENT_ID.source, not: { const: OWN_CLIENT.id } },
  name: {
    type: 'string',
    description: 'What people are shown, and its keys are named after.',
    minLength: 1,
    maxLength: MAX_CLIENT_NAME_LENGTH,
  },
  redirects: {
    type: 'array',
    description: 'Where people may be sent back to; none for a client that only shows a code.',
    items: {
      type: 'string',
      pattern: '^[a-z][a-z0-9.+-]*:/',
      examples: ['https://app.example.org/done', 'http://127.0.0.1/done'],
    },
  },
  refreshes: {
    type: 'boolean',
    description: 'Whether its keys end after an hour, and it gets new secrets by a refresh token. Default: false.',
  },
};
const REGISTERED = { type: 'array', maxItems: MAX_CLIENTS, items: mapOf(CLIENT_FIELDS, CLIENT, ['id', 'name']) };

/** A role, where permissions stand as well. */
const ROLE_GRANT = { type: 'string', pattern: '^\\s*[Rr][Oo][Ll][Ee]:\\s*[A-Za-z][A-Za-z0-9_]{0,63}\\s*$' };

/**
 * The JSON Schema (draft 2020-12) of the configuration. It accepts a little more than the rules do: it knows nothing of
 * what is declared elsewhere, of hosts and paths that are none, and of routes that contradict one another.
 */
export function configSchema(): string {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'The configuration of svc-api, svc-api.yaml',
    ...mapOf(CONFIG_FIELDS, {
      $schema: SCHEMA_FIELD,
      resources: {
        type: 'array',
        description: 'Resources beside the built-in ones: capital letters, digits and underscores.',
        maxItems: MAX_DECLARED,
        items: { anyOf: [name, mapOf(RESOURCE_FIELDS, { name, credentials }, ['name'])] },
      },
      roles: {
        type: 'object',
        description: 'Roles beside the built-in ones, each with the permissions that it allows.',
        maxProperties: MAX_DECLARED,
        propertyNames: { ...name, not: { enum: ROLES } },
        additionalProperties: permissions,
      },
      credentials: {
        type: 'array',
        description: 'Where a key may stand in a request. Default: bearer alone.',
        minItems: 1,
        items: { anyOf: [{ enum: ['bearer', 'basic'] }, mapOf(['header'], { header }, ['header'])] },
      },
      trust: {
        type: 'array',
        description: 'Networks whose forwarded headers are believed. Default: loopback.',
        items: {
          type: 'string',
          pattern: '^[0-9A-Fa-f.:]+(?:/[0-9]{1,3})?$',
          examples: ['10.0.0.0/8', '2001:db8::/32'],
        },
      },
      upstreams: {
        type: 'object',
        description: 'The services that guard passes requests on to, by names that routes have.',
        maxProperties: MAX_UPSTREAMS,
        propertyNames: { pattern: '^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9])?$' },
        additionalProperties: { anyOf: [UPSTREAM_URL, mapOf(UPSTREAM_FIELDS, UPSTREAM, ['url'])] },
      },
      routes: {
        type: 'array',
        description: 'What requests require. The most specific route decides; without one, a request is refused.',
        items: {
          ...mapOf(ROUTE_FIELDS, ROUTE, ['host', 'path']),
          oneOf: [{ required: ['allow'] }, { required: ['resource'] }],
        },
      },
      expect: {
        type: 'array',
        description: 'What is expected of the routes. A file whose expectations do not hold is not taken.',
        items: { type: 'string', examples: ['GET https://example.org/api with DOCKER:READ_ANY is allowed'] },
      },
      cors: {
        description: 'Whose pages may send requests.',
        ...mapOf(['origins'], { origins: { type: 'array', items: { anyOf: ORIGINS } } }),
      },
      tls: {
        description:
          'The certificate and its key, and whose certificates edges must have, from the folder of this file.',
        ...mapOf(TLS_FIELDS, { cert: PATH, key: PATH, clientCa: PATH }, ['cert', 'key']),
      },
      server: {
        description: 'What tunes "serve" and "guard", from when they start. Flags and environment variables win.',
        ...mapOf(SERVER_FIELDS, {
          keepAlive: {
            ...countTo(SERVER_NUMBERS.keepAlive),
            description: 'How many seconds a connection is kept for a further request. Default: 75.',
          },
          maxConnections: {
            ...countTo(SERVER_NUMBERS.maxConnections),
            description:
              'Connections that each process has at a time. ' +
              'Default: 128 fewer than it may have open files, at most 20000.',
          },
          maxConnectionsPerAddress: {
            ...countTo(SERVER_NUMBERS.maxConnectionsPerAddress),
            description: 'Connections from one address, or one /64 of IPv6. Default: half of all; from loopback, all.',
          },
          maxVerifiedKeys: {
            ...countTo(SERVER_NUMBERS.maxVerifiedKeys),
            description: 'Accepted secrets that each process remembers, at 1 KB of memory each. Default: 100000.',
          },
          metricsHost: {
            type: 'string',
            description: 'The address at which metrics are served. Default: 127.0.0.1.',
            pattern: '\\S',
          },
        }),
      },
      limits: {
        description: 'How many requests are answered.',
        ...mapOf(LIMITS_FIELDS, {
          default: { type: 'array', description: 'For each key that has no limits of its own.', items: LIMIT },
          failedCredentials: { ...LIMIT, description: 'Wrong keys from one address. Default: 20/m.' },
        }),
      },
      policy: {
        description: 'What is demanded of all keys.',
        ...mapOf(POLICY_RULES, {
          maxLifetime: { ...DURATION, description: 'How far ahead the expiry of a key may lie.' },
          requireExpiry: { type: 'boolean', description: 'Every key must expire. Default: false.' },
          grantableByKeys: {
            type: 'array',
            description: 'Roles and permissions that keys may grant. Default: what they hold.',
            items: { anyOf: [{ type: 'string', pattern: '^\\s*[A-Za-z][A-Za-z0-9_]{0,63}\\s*$' }, PERMISSION] },
          },
          maxKeysPerCreator: {
            type: 'integer',
            description: 'How many live keys a key may have created.',
            minimum: 1,
            maximum: MAX_KEYS_PER_CREATOR,
          },
          disableUnused: { ...DURATION, description: 'After how long without use a key is disabled: a day or more.' },
        }),
      },
      people: {
        description: 'Who signs people in without a key, for the console and for consent, and what they are granted.',
        ...mapOf(
          PEOPLE_FIELDS,
          {
            header: { ...header, description: 'The header in which a trusted proxy says who it is.' },
            groups: { ...header, description: 'The header with their groups, between commas.' },
            oidc: {
              description: 'A provider of OpenID Connect.',
              ...mapOf(
                OIDC_FIELDS,
                {
                  issuer: { type: 'string', description: 'Its URL, as it says it itself.', pattern: '^https?://' },
                  'client-id': { type: 'string', pattern: '^\\S(?:.*\\S)?$' },
                  'client-secret': mapOf(
                    SECRET_FIELDS,
                    {
                      file: {
                        type: 'string',
                        description: 'A file with the secret, from the folder of this file.',
                        minLength: 1,
                      },
                    },
                    SECRET_FIELDS,
                  ),
                  groups: {
                    type: 'string',
                    description: 'The claim with their groups. Default: groups.',
                    pattern: '^\\S(?:.*\\S)?$',
                  },
                },
                ['issuer', 'client-id', 'client-secret'],
              ),
            },
            grant: {
              type: 'object',
              description: 'What the people of each group are granted; "*" is everybody who signs in.',
              minProperties: 1,
              maxProperties: MAX_GROUPS,
              propertyNames: { pattern: '^[^\\s,](?:[^,]*[^\\s,])?$' },
              additionalProperties: {
                type: 'array',
                minItems: 1,
                items: {
                  anyOf: [ROLE_GRANT, PERMISSION],
                },
                examples: [['role:ADMIN'], ['DOCKER:READ_ANY']],
              },
            },
          },
          ['grant'],
        ),
        oneOf: [
          { required: ['header'], not: { required: ['oidc'] } },
          { required: ['oidc'], not: { anyOf: [{ required: ['header'] }, { required: ['groups'] }] } },
        ],
      },
      federation: {
        type: 'array',
        description: 'Which tokens of issuers, such as those of pipelines, are exchanged for which keys.',
        minItems: 1,
        maxItems: MAX_RULES,
        items: mapOf(
          RULE_FIELDS,
          {
            name: { type: 'string', description: 'Also the name of the key that what it issues descends from.' },
            issuer: {
              description: 'Who signs the tokens.',
              anyOf: [
                { enum: Object.keys(PRESETS).filter((name) => PRESETS[name]!.url !== undefined) },
                {
                  ...mapOf(ISSUER_FIELDS, {
                    preset: { enum: Object.keys(PRESETS) },
                    url: { type: 'string', description: 'The "iss" of its tokens.', pattern: '^https?://' },
                    jwks: {
                      description: 'Where its keys are, or the file that has them. Default: as its metadata say.',
                      anyOf: [
                        { type: 'string', pattern: '^https?://' },
                        mapOf(['file'], { file: { type: 'string', minLength: 1 } }, ['file']),
                      ],
                    },
                    audience: { type: 'string', description: 'The "aud" of its tokens. Default: publicUrl.' },
                    algorithms: { type: 'array', minItems: 1, items: { enum: ALGORITHMS } },
                    keysMaxAge: {
                      type: 'string',
                      description: 'How long its keys are used that could not be read again. Default: 1d.',
                    },
                  }),
                  anyOf: [{ required: ['preset'] }, { required: ['url'] }],
                },
              ],
            },
            when: {
              type: 'object',
              description: 'What a token must say: each claim is one text, or one of a list, exactly.',
              minProperties: 1,
              maxProperties: MAX_VALUES,
            },
            grant: { type: 'array', minItems: 1, items: { anyOf: [ROLE_GRANT, PERMISSION] } },
            ttl: { ...DURATION, description: 'How long a key is valid that it issues. Default: 15m.' },
            reuse: { type: 'boolean', description: 'Whether a token may be used more than once. Default: false.' },
          },
          ['name', 'issuer', 'when', 'grant'],
        ),
      },
      audit: {
        description: 'For how long entries of the audit log are kept: older ones are pruned once an hour.',
        ...mapOf(AUDIT_FIELDS, { keep: { ...DURATION, description: 'A day or more. Default: for ever.' } }, ['keep']),
      },
      notices: {
        description: 'A webhook that is notified of what happens to keys, signed as Standard Webhooks has it.',
        ...mapOf(
          NOTICES_FIELDS,
          {
            url: { type: 'string', description: 'By https, or by http on loopback.', pattern: '^https?://' },
            secretFile: {
              type: 'string',
              description:
                'A file with the secret that signs, from the folder of this file. Default: SVC_API_NOTICES_SECRET.',
              minLength: 1,
            },
            events: {
              type: 'array',
              description: 'Default: all events.',
              minItems: 1,
              items: { enum: NOTICE_TYPES },
            },
            refusedOften: {
              type: 'integer',
              description: 'How many refused requests of a key within an hour are often. Default: 100.',
              minimum: 1,
              maximum: MAX_REFUSED_OFTEN,
            },
          },
          ['url'],
        ),
      },
      'sign-in': {
        enum: SIGN_IN,
        description: 'Whether people sign in to guarded services, on a page. Default: behind guard alone.',
      },
      feed: {
        description: 'By what else than HTTP edges follow: NATS with JetStream, from where this is read at the start.',
        ...mapOf(
          ['nats'],
          {
            nats: mapOf(
              NATS_FIELDS,
              {
                servers: {
                  type: 'array',
                  minItems: 1,
                  items: { type: 'string', pattern: '^(nats|tls)://[^/?#@\\s]+/?$' },
                },
                credentials: mapOf(['file'], { file: PATH }, ['file']),
                name: { type: 'string', pattern: NATS_NAME_FORM.source, description: 'Default: svc-api.' },
              },
              ['servers'],
            ),
          },
          ['nats'],
        ),
      },
      introspection: { enum: INTROSPECTION, description: 'Who may ask GraphQL for its schema. Default: on.' },
      publicUrl: {
        type: 'string',
        description:
          'The address under which clients reach the service, with its path. Default: the one that they ask.',
        pattern: PUBLIC_URL.source,
        examples: ['https://keys.example.org'],
      },
      consent: {
        description:
          'How applications may ask for keys: not at all, by codes that they show, by pages that they open, or both. ' +
          'Default: "svc-api login" alone may, by a code.',
        enum: CONSENT_MODES,
      },
      clients: {
        description: 'Applications that may ask for keys, beside svc-api itself.',
        anyOf: [
          REGISTERED,
          {
            ...mapOf(CLIENTS_FIELDS, {
              registered: REGISTERED,
              'metadata-documents': {
                description:
                  'Hosts whose applications are known by a document at the URL that is their id. Default: off.',
                anyOf: [
                  { enum: ['any', 'off'] },
                  { type: 'array', minItems: 1, items: { type: 'string', pattern: '^[a-z0-9]' } },
                ],
              },
              'dynamic-registration': {
                type: 'boolean',
                description: 'Whether any application may register itself. Default: false.',
              },
              refresh: mapOf(REFRESH_FIELDS, {
                leeway: {
                  type: 'string',
                  description:
                    'How long a refresh token that was replaced still brings the newest secret, at most 30m. Default: 30m.',
                  examples: ['30m', '0s'],
                },
                lifetime: {
                  type: 'string',
                  description: 'How long after the consent a key can be refreshed. Default: as long as was agreed to.',
                  examples: ['90d'],
                },
              }),
            }),
            minProperties: 1,
          },
        ],
      },
    }),
    // An empty file is one without fields.
    type: ['object', 'null'],
    // A proxy that signs people in is named.
    anyOf: [
      { not: { required: ['people'], properties: { people: { required: ['header'] } } } },
      { required: ['trust'], properties: { trust: { minItems: 1 } } },
    ],
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

function countTo(most: number): object {
  return { type: 'integer', minimum: 1, maximum: most };
}

function mapOf<Field extends string>(
  fields: readonly Field[],
  properties: Record<Field, object>,
  required: readonly Field[] = [],
): object {
  return {
    type: 'object',
    ...(required.length > 0 && { required }),
    additionalProperties: false,
    properties: inOrder(fields, properties),
  };
}
