import * as v from 'valibot';
import { formatDuration, printable, suggestion, UNIT_MS, withoutUndefined } from '../../keys/basics/index.ts';
import { readPeriod } from '../../keys/permissions/index.ts';
import {
  atMost,
  distinct,
  either,
  json,
  list,
  map,
  oneOf,
  optional,
  required,
  rule,
  text,
  textWith,
} from '../../config/schema.ts';
import { section } from '../../config/section.ts';
import { period } from '../../config/values.ts';
import {
  type Client,
  CLIENT_ID,
  invalidClient,
  MAX_CLIENT_NAME_LENGTH,
  OWN_CLIENT,
  unusableClients,
} from './clients.ts';
import { CONSENT_MODES } from './modes.ts';
import { DEFAULT_REFRESH, MAX_LEEWAY_MS } from './refresh.ts';

export const consent = section({
  description:
    'How applications can request keys: by showing a code ("device"), by opening a page ("code"), "both", ' +
    'or not at all ("off").',
  otherwise: 'only "svc-api login" can, with a code',
  page: 'consent.md#who-may-ask',
  schema: () =>
    v.picklist(CONSENT_MODES, ({ input }) => {
      const meant = typeof input === 'string' ? suggestion(input, CONSENT_MODES) : '';
      return `${meant}The field "consent" must be off, device, code or both.`;
    }),
  into: (consent) => ({ consent }),
});

/** The most applications. */
const MAX_CLIENTS = 1000;
/** A shorter lifetime would end before the first secret expires. */
const MIN_LIFETIME_MS = UNIT_MS.h;
const HOST = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/;
const DOCUMENT_HOSTS = 'must be any, off, or a list of hosts, such as [claude.ai].';

const LEEWAY = `A leeway is at most ${formatDuration(MAX_LEEWAY_MS)}: secrets last an hour.`;

const client = v.pipe(
  map(
    {
      id: required(
        v.pipe(v.string(), json({ pattern: CLIENT_ID.source, not: { const: OWN_CLIENT.id } })),
        'Its client_id.',
      ),
      name: required(
        v.pipe(v.string(), json({ minLength: 1, maxLength: MAX_CLIENT_NAME_LENGTH })),
        'Name shown on pages and used in the names of its keys.',
      ),
      redirects: optional(
        v.array(
          v.pipe(
            v.string(),
            json({
              pattern: '^[a-z][a-z0-9.+-]*:/',
              examples: ['https://app.example.org/done', 'http://127.0.0.1/done'],
            }),
          ),
        ),
        'Redirect URIs: where people return to after approving.',
        { otherwise: 'none, for a client that only shows a code' },
      ),
      refreshes: optional(
        v.boolean(),
        'Its secrets expire after an hour, and it refreshes them with a refresh token.',
        {
          otherwise: 'false',
          page: 'consent.md#refresh-tokens',
        },
      ),
    },
    'A client must be a map with the fields "id" and "name", and "redirects", a list.',
  ),
  v.transform(({ redirects = [], refreshes, ...named }): Client => ({
    ...named,
    redirects,
    ...(refreshes && { refreshes }),
  })),
  rule(invalidClient),
);

const registered = v.pipe(
  v.array(client),
  atMost(MAX_CLIENTS, 'clients'),
  distinct(
    ({ id }) => id,
    (id) => `"${printable(id)}" is declared more than once.`,
  ),
  v.transform((clients) => [...clients]),
);

const hosts = list(
  textWith(
    (host) =>
      HOST.test(host) ? undefined : `"${printable(host)}" is not a host: write it in lower case, such as claude.ai.`,
    { pattern: '^[a-z0-9]' },
  ),
  DOCUMENT_HOSTS,
);

const others = map(
  {
    registered: optional(registered, 'The list of applications, if "clients" is a map.', { otherwise: 'none' }),
    'metadata-documents': optional(
      either([oneOf(['any', 'off']), hosts], DOCUMENT_HOSTS),
      'Hosts whose applications can use the URL of a document about them as their id, "any" or "off".',
      { otherwise: 'off', page: 'agents.md#logging-in' },
    ),
    'dynamic-registration': optional(v.boolean(), 'Any application can register itself.', {
      otherwise: 'false',
      page: 'agents.md#logging-in',
    }),
    refresh: optional(
      map(
        {
          leeway: optional(
            text<number>((given) => {
              const leeway = given === '0s' ? 0 : readPeriod(given, 0);
              if (typeof leeway === 'string') return { refusal: leeway };
              return leeway <= MAX_LEEWAY_MS ? { value: leeway } : { refusal: LEEWAY };
            }),
            'How long a used refresh token still returns the newest secret, at most 30m; 0s for never.',
            { otherwise: '30m' },
          ),
          lifetime: optional(period(MIN_LIFETIME_MS), 'How long after its approval a key can be refreshed.', {
            otherwise: 'until the approved expiry',
          }),
        },
        'must be a map, such as { leeway: 30m, lifetime: 90d }.',
      ),
      'Refreshing the keys of applications.',
      { page: 'consent.md#refresh-tokens' },
    ),
  },
  undefined,
  (given) => Object.keys(given).length > 0,
);

const EMPTY = 'The map "clients" is empty. Leave it out, or write a list of clients.';

export const clients = section({
  description: 'Applications that can request keys, besides svc-api itself: a list, or a map. Requires "consent".',
  otherwise: 'svc-api itself',
  page: 'consent.md#applications',
  schema: ({ given: { consent } }) =>
    v.pipe(
      either(
        [
          v.pipe(
            registered,
            v.transform((registered) => ({ registered })),
          ),
          v.pipe(others, json({ minProperties: 1 })),
        ],
        (given) => (typeof given === 'object' && given !== null ? EMPTY : 'must be a list.'),
      ),
      v.transform((given: v.InferOutput<typeof others>) => ({
        clients: given.registered ?? [],
        clientDocuments: given['metadata-documents'] ?? ('off' as const),
        dynamicRegistration: given['dynamic-registration'] ?? false,
        refresh: { ...DEFAULT_REFRESH, ...withoutUndefined(given.refresh ?? {}) },
      })),
      rule(({ clients, clientDocuments, dynamicRegistration }) => {
        if ((clientDocuments !== 'off' || dynamicRegistration) && consent !== 'code' && consent !== 'both')
          return 'Clients that are not registered use pages: set "consent: code" or "consent: both".';
        return consent === undefined ? unusableClients(clients, undefined) : undefined;
      }),
    ),
  into: (clients) => clients,
});
