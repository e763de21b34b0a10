import * as v from 'valibot';
import {
  formatList,
  invalidNetwork,
  invalidOrigin,
  invalidPublicUrl,
  nearest,
  Networks,
  OTHER_ORIGIN,
  printable,
  PUBLIC_URL,
  suggestion,
  UNIT_MS,
  withoutUndefined,
} from '../../keys/basics/index.ts';
import {
  DEFAULT_NOTICES,
  invalidWebhook,
  MAX_REFUSED_OFTEN,
  NOTICE_TYPES,
  type NoticeType,
} from '../../keys/feed/index.ts';
import { readPeriod } from '../../keys/permissions/index.ts';
import { problemOfHeader } from '../../keys/secret/index.ts';
import { isNatsAddress, NATS_NAME, NATS_NAME_FORM, SERVER_NUMBERS } from '../config.ts';
import { DURATION, HEADER } from '../patterns.ts';
import { count, distinct, either, list, map, oneOf, optional, required, text, textWith } from '../schema.ts';
import { fileIn, filePath, section } from '../section.ts';

const placeOfHeader = map(
  {
    header: v.pipe(
      textWith((name) => {
        const problem = problemOfHeader(name);
        return problem && `The header "${printable(name)}" cannot hold a key: it ${problem}.`;
      }, HEADER),
      v.toLowerCase(),
    ),
  },
  '',
  (given) => Object.keys(given).some((field) => nearest(field, ['header']).length > 0),
);

export const credentials = section({
  name: 'credentials',
  description: 'The places of a key in a request: bearer, basic (the key is the password), or a header of your choice.',
  otherwise: 'bearer alone',
  schema: () =>
    v.pipe(
      v.array(
        either([v.picklist(['bearer', 'basic']), placeOfHeader], (given) => {
          const shown = typeof given === 'string' ? `"${printable(given)}" is not a place for a key. Write` : 'Write';
          return `${shown} bearer, basic, or { header: X-Api-Key }.`;
        }),
      ),
      v.minLength(1, 'The list "credentials" is empty, so that no key could be sent. Leave it out for bearer.'),
      distinct(
        (place) => (typeof place === 'string' ? place : place.header && `the header ${place.header}`),
        (name) => `${name} is listed more than once.`,
      ),
    ),
  into: (credentials) => ({ credentials }),
});

export const trust = section({
  name: 'trust',
  description: 'Networks of reverse proxies, whose headers about the client are believed. "people.header" requires it.',
  otherwise: 'loopback: 127.0.0.0/8 and ::1/128',
  schema: () =>
    list(
      textWith(invalidNetwork, {
        pattern: '^[0-9A-Fa-f.:]+(?:/[0-9]{1,3})?$',
        examples: ['10.0.0.0/8', '2001:db8::/32'],
      }),
    ),
  into: (trust) => ({ trust: new Networks(trust) }),
});

const ORIGIN = { anyOf: [{ const: '*' }, { pattern: '^https?://[^/?#@\\s]+$' }, { pattern: OTHER_ORIGIN.source }] };

export const cors = section({
  name: 'cors',
  description: 'The pages of other origins that can send requests.',
  schema: () =>
    map(
      {
        origins: optional(list(textWith(invalidOrigin, ORIGIN)), 'Origins, as browsers send them; "*" for all.', {
          otherwise: 'none',
        }),
      },
      'must be a map with the field "origins", a list.',
    ),
  into: ({ origins = [] }) => ({ cors: { origins } }),
});

export const tls = section({
  name: 'tls',
  description: 'Files in PEM, from the folder of this file.',
  otherwise: 'plain HTTP',
  schema: (context) =>
    map(
      {
        cert: required(filePath(context), 'The certificate.'),
        key: required(filePath(context), 'The private key of the certificate.'),
        clientCa: optional(filePath(context), 'The authority that must have signed the certificates of edges.', {
          otherwise: 'they need none',
          page: 'edge.md',
        }),
      },
      'must be a map with the fields "cert" and "key".',
    ),
  into: (tls) => ({ tls: withoutUndefined(tls) }),
});

export const server = section({
  name: 'server',
  description: 'Settings of "serve" and "guard", from when they start. Flags and environment variables win.',
  schema: () =>
    map({
      keepAlive: optional(
        count(SERVER_NUMBERS.keepAlive),
        'How many seconds a connection is kept for a further request (SVC_API_KEEP_ALIVE, --keep-alive).',
        { otherwise: '75' },
      ),
      maxConnections: optional(
        count(SERVER_NUMBERS.maxConnections),
        'Connections that each process has at a time (--max-connections).',
        {
          otherwise: '128 fewer than it can have open files, at most 20000',
          page: 'operations.md#connections-and-memory',
        },
      ),
      maxConnectionsPerAddress: optional(
        count(SERVER_NUMBERS.maxConnectionsPerAddress),
        'Connections from one address, or one /64 of IPv6 (--max-connections-per-address).',
        { otherwise: 'half of all; from loopback, all' },
      ),
      maxVerifiedKeys: optional(
        count(SERVER_NUMBERS.maxVerifiedKeys),
        'Accepted secrets that each process remembers, at 1 KB of memory each (--max-verified-keys).',
        { otherwise: '100000' },
      ),
      metricsHost: optional(
        textWith(
          (host) => (host.trim() === '' ? 'is empty. Give an address to listen on, such as 127.0.0.1.' : undefined),
          { pattern: '\\S' },
        ),
        'The address at which metrics are served (SVC_API_METRICS_HOST, --metrics-host).',
        { otherwise: '127.0.0.1', page: 'observability.md#metrics' },
      ),
    }),
  into: (server) => ({ server }),
});

/** A duration in milliseconds. @param least the shortest */
export function period(least: number) {
  return text<number>((given) => {
    const read = readPeriod(given, least);
    return typeof read === 'number' ? { value: read } : { refusal: read };
  }, DURATION);
}

export const audit = section({
  name: 'audit',
  description: 'How long the audit log is kept.',
  otherwise: 'for ever',
  schema: () =>
    map(
      {
        // Servers prune once an hour, and a webhook gets what is kept.
        keep: required(
          period(UNIT_MS.d),
          'How long entries are kept: a day or more. Servers prune older ones once an hour, with an entry PRUNE.',
          { page: 'operations.md#the-audit-log' },
        ),
      },
      'must be a map with the field "keep", such as { keep: 400d }.',
    ),
  into: (audit) => ({ audit }),
});

export const notices = section({
  name: 'notices',
  description: 'A webhook that is notified of what happens to keys, signed as Standard Webhooks has it.',
  otherwise: 'none',
  page: 'notices.md',
  schema: (context) =>
    map({
      url: required(textWith(invalidWebhook, { pattern: '^https?://' }), 'By https, or by http on loopback.'),
      secretFile: optional(filePath(context), 'A file with the secret that signs, from the folder of this file.', {
        otherwise: 'SVC_API_NOTICES_SECRET',
      }),
      events: optional(
        list(
          text<NoticeType>(
            (given) => {
              const value = NOTICE_TYPES.find((type) => type === given);
              const message = `"${printable(given)}" is not an event. ${suggestion(given, NOTICE_TYPES)}`;
              return value ? { value } : { refusal: `${message}The events are ${formatList(NOTICE_TYPES)}.` };
            },
            { enum: NOTICE_TYPES },
          ),
          'The field "events" is empty. Leave it out for all events, or leave out "notices".',
        ),
        'The events that it is notified of.',
        { otherwise: 'all' },
      ),
      refusedOften: optional(count(MAX_REFUSED_OFTEN), 'How many refused requests of a key within an hour are often.', {
        otherwise: String(DEFAULT_NOTICES.refusedOften),
      }),
    }),
  into: (notices) => ({ notices: { secretFile: undefined, ...DEFAULT_NOTICES, ...withoutUndefined(notices) } }),
});

export const introspection = section({
  name: 'introspection',
  description:
    'Who can ask GraphQL for its schema: "on" for every key, "permitted" for those with PERMISSION:READ_ANY, or "off".',
  otherwise: 'on',
  schema: () => oneOf(['on', 'off', 'permitted']),
  into: (introspection) => ({ introspection }),
});

export const publicUrl = section({
  name: 'publicUrl',
  description: 'The address under which clients reach the service, with its path.',
  otherwise: 'the one of each request',
  page: 'consent.md',
  schema: () => textWith(invalidPublicUrl, { pattern: PUBLIC_URL.source, examples: ['https://keys.example.org'] }),
  into: (publicUrl) => ({ publicUrl }),
});

export const signIn = section({
  name: 'sign-in',
  description: 'Whether people sign in to guarded services, on a page: "on" or "off".',
  otherwise: 'only behind guard',
  page: 'guard.md#people',
  schema: () => oneOf(['on', 'off']),
  into: (signIn) => ({ signIn }),
});

const NO_SERVERS = 'The list "servers" is empty. Name at least one, as nats://127.0.0.1:4222.';

export const feed = section({
  name: 'feed',
  description: 'Another way than HTTP for edges to follow, from the start of the server.',
  otherwise: 'HTTP alone',
  page: 'edge.md',
  schema: (context) =>
    map(
      {
        nats: required(
          map(
            {
              servers: required(
                list(
                  textWith(
                    (address) =>
                      isNatsAddress(address)
                        ? undefined
                        : `"${printable(address)}" is not a server: write it as nats://127.0.0.1:4222 or tls://host, alone.`,
                    { pattern: '^(nats|tls)://[^/?#@\\s]+/?$' },
                  ),
                  NO_SERVERS,
                ),
                'Addresses of its servers, without secrets.',
              ),
              credentials: optional(
                fileIn(context, 'The field "credentials" must be a map with the field "file".'),
                'A file of credentials as nsc makes it.',
                { otherwise: 'none' },
              ),
              name: optional(
                v.pipe(
                  v.string('must be of letters, digits, "-" and "_", and at most 100 long.'),
                  v.regex(NATS_NAME_FORM, 'must be of letters, digits, "-" and "_", and at most 100 long.'),
                ),
                'The first part of the names of its bucket and subjects.',
                { otherwise: NATS_NAME },
              ),
            },
            'must be a map with servers, credentials and name.',
          ),
          'NATS with JetStream; "edge" then needs no --origin.',
        ),
      },
      'must be a map with the field "nats".',
    ),
  into: ({ nats: { servers, credentials, name = NATS_NAME } }) => ({ feed: { nats: { servers, credentials, name } } }),
});
