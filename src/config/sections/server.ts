import * as v from 'valibot';
import {
  hasControlCharacters,
  invalidNetwork,
  invalidOrigin,
  invalidPublicUrl,
  nearest,
  Networks,
  OTHER_ORIGIN,
  printable,
  PUBLIC_URL,
  UNIT_MS,
  withoutUndefined,
} from '../../keys/basics/index.ts';
import { problemOfHeader } from '../../keys/secret/index.ts';
import { SERVER_NUMBERS } from '../config.ts';
import { HEADER } from '../patterns.ts';
import { count, distinct, either, list, map, oneOf, optional, required, textWith } from '../schema.ts';
import { filePath, section } from '../section.ts';
import { period } from '../values.ts';

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
  description: 'Networks of reverse proxies, whose headers about the client are trusted. "people.header" requires it.',
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
  description: 'Files of a certificate, in PEM. Paths are relative to the folder of this file.',
  otherwise: 'plain HTTP',
  schema: (context) =>
    map(
      {
        cert: required(filePath(context), 'The certificate.'),
        key: required(filePath(context), 'The private key of the certificate.'),
        clientCa: optional(filePath(context), 'The CA of the certificates that edges must present.', {
          otherwise: 'edges need no certificate',
          page: 'edge.md',
        }),
      },
      'must be a map with the fields "cert" and "key".',
    ),
  into: (tls) => ({ tls: withoutUndefined(tls) }),
});

export const server = section({
  description:
    'Settings of "serve" and "guard", read when they start. Flags and environment variables take precedence.',
  schema: () =>
    map({
      keepAlive: optional(
        count(SERVER_NUMBERS.keepAlive),
        'How many seconds a connection is kept for a further request (SVC_API_KEEP_ALIVE, --keep-alive).',
        { otherwise: '75' },
      ),
      maxConnections: optional(count(SERVER_NUMBERS.maxConnections), 'Connections that each process has at a time.', {
        otherwise: '128 fewer than it can have open files, at most 20000',
        page: 'operations.md#connections-and-memory',
      }),
      maxConnectionsPerAddress: optional(
        count(SERVER_NUMBERS.maxConnectionsPerAddress),
        'Connections from one address, or one /64 of IPv6.',
        { otherwise: 'half of all; from loopback, all' },
      ),
      maxVerifiedKeys: optional(
        count(SERVER_NUMBERS.maxVerifiedKeys),
        'Accepted secrets that each process remembers, at 1 KB of memory each.',
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

export const audit = section({
  description: 'How long the audit log is kept.',
  otherwise: 'forever',
  schema: () =>
    map(
      {
        // Servers prune once an hour, and webhooks get the events of entries that are kept.
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

/** The most characters of a title. */
const MAX_TITLE = 60;
const TITLE = `must be one line of at most ${MAX_TITLE} characters, without blanks around it.`;

export const title = section({
  description: 'The name of the service on its pages: the console, sign-in and consent.',
  otherwise: 'svc-api',
  page: 'console.md#its-name',
  schema: () =>
    textWith(
      (given) =>
        given !== '' && given === given.trim() && given.length <= MAX_TITLE && !hasControlCharacters(given)
          ? undefined
          : TITLE,
      { minLength: 1, maxLength: MAX_TITLE, pattern: '^\\S(?:.*\\S)?$', examples: ['Acme keys'] },
    ),
  into: (title) => ({ title }),
});

export const introspection = section({
  description:
    'Who can ask GraphQL for its schema: "on" for every key, "permitted" for those with PERMISSION:READ_ANY, or "off".',
  otherwise: 'on',
  schema: () => oneOf(['on', 'off', 'permitted']),
  into: (introspection) => ({ introspection }),
});

export const publicUrl = section({
  description: 'The address under which clients reach the service, with its path.',
  otherwise: 'the address of each request',
  page: 'consent.md',
  schema: () => textWith(invalidPublicUrl, { pattern: PUBLIC_URL.source, examples: ['https://keys.example.org'] }),
  into: (publicUrl) => ({ publicUrl }),
});
