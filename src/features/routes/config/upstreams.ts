import * as v from 'valibot';
import { printable } from '../../../keys/basics/index.ts';
import {
  parseUpstream,
  problemOfPassedHeader,
  problemOfSentHeader,
  type SentCredential,
  type Upstream,
} from '../upstream.ts';
import {
  atMost,
  either,
  json,
  map,
  named,
  namesAtMost,
  optional,
  required,
  rule,
  text,
  textWith,
} from '../../../config/schema.ts';
import { fileIn, filePath, section, type SectionContext } from '../../../config/section.ts';

/** Valid names of upstreams, which appear in logs and metrics. */
const UPSTREAM_NAME = /^[a-z0-9](?:[a-z0-9_.-]{0,62}[a-z0-9])?$/i;
/** The most upstreams. */
const MAX_UPSTREAMS = 1000;
/** The most headers that an upstream gets of who makes a request. */
const MAX_PASSED = 100;
const SCHEME = /^[a-z][a-z0-9-]*$/i;

const address = text(parseUpstream, {
  pattern: '^[Hh][Tt][Tt][Pp](?:[Ss]|\\+[Uu][Nn][Ii][Xx])?://',
  examples: ['http://127.0.0.1:3000', 'https://grafana.internal', 'http+unix:///run/app.sock'],
});

const CREDENTIAL = {
  header: { what: 'header', example: 'X-Api-Key' },
  query: { what: 'parameter', example: 'apikey' },
};

/** Credentials that an upstream gets in headers, or in the query. */
function sentIn(place: SentCredential['in'], context: SectionContext) {
  const { what, example } = CREDENTIAL[place];
  const form = `must be a map, such as { ${example}: { file: /run/secrets/app } }.`;
  const name = v.pipe(
    v.string(),
    rule((given) => {
      const isName = /^[\w.~-]+$/.test(given);
      const problem = place === 'header' ? problemOfSentHeader(given) : isName ? undefined : 'is not a name';
      return problem && `The ${what} "${printable(given)}" cannot be sent: it ${problem}.`;
    }),
  );
  const credential = map(
    {
      file: required(filePath(context), 'Relative to the folder of this file.'),
      scheme: optional(
        v.pipe(
          v.string('must be one word, such as Bearer.'),
          v.regex(SCHEME, 'must be one word, such as Bearer.'),
          json({ pattern: '^[A-Za-z][A-Za-z0-9-]*$', examples: ['Bearer'] }),
        ),
        'Word to send before the content of the file, such as Bearer.',
      ),
    },
    '"{field}" must name the file of the credential, such as { file: /run/secrets/app }.',
  );
  return v.pipe(
    named(name, credential, form),
    v.minEntries(1, form),
    v.transform((sent) =>
      Object.entries(sent).map(([name, { file, scheme }]): SentCredential => ({
        in: place,
        name,
        file,
        ...(scheme !== undefined && { scheme }),
      })),
    ),
  );
}

/** The user and the password that an upstream gets by Basic. */
function basicOf(context: SectionContext) {
  return v.pipe(
    map(
      {
        user: required(
          v.pipe(v.string(), v.regex(/^[^:]*$/, 'The field "user" has a colon, which Basic does not allow.')),
        ),
        password: required(fileIn(context, 'must name its file: { file: /run/secrets/app }.')),
      },
      'must be a map, such as { user: admin, password: { file: /run/secrets/app } }.',
    ),
    v.transform(({ user, password: { file } }): SentCredential[] => [
      { in: 'header', name: 'Authorization', file, user },
    ]),
  );
}

const passHeaders = v.pipe(
  v.array(
    v.pipe(
      textWith(
        (name) => {
          const problem = problemOfPassedHeader(name);
          return problem && `The header "${printable(name)}" cannot be passed on: it ${problem}.`;
        },
        { pattern: '^[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*$', examples: ['X-Forwarded-User'] },
      ),
      v.toLowerCase(),
    ),
    'must be a list of names of headers, such as [X-Forwarded-User].',
  ),
  atMost(MAX_PASSED, 'passHeaders'),
);

function upstreamOf(context: SectionContext) {
  const fields = map(
    {
      url: required(address, 'Its address: http, https or http+unix.'),
      send: optional(
        sentIn('header', context),
        'Headers to send with the content of files. They replace what callers send.',
        { page: 'guard.md#a-credential-that-callers-never-see' },
      ),
      query: optional(sentIn('query', context), 'Query parameters to send, in the same form.'),
      basic: optional(basicOf(context), 'User and password to send with Basic.'),
      rewriteHost: optional(v.boolean(), "Send its own address as the Host instead of the client's."),
      passHeaders: optional(
        passHeaders,
        'Identity headers to pass on from proxies in "trust". Other identity headers are removed.',
        { page: 'guard.md#headers-that-name-a-person' },
      ),
      ranges: optional(v.boolean(), 'Allow Range requests, although credentials split across parts cannot be hidden.', {
        page: 'guard.md#a-credential-that-callers-never-see',
      }),
    },
    'An upstream must be an address, such as http://127.0.0.1:3000, or a map with the field "url".',
  );
  return v.pipe(
    fields,
    v.transform(({ url, send = [], query = [], basic = [], rewriteHost = false, passHeaders = [], ranges }) => ({
      address: url,
      send: [...send, ...query, ...basic],
      rewriteHost,
      ...(passHeaders.length > 0 && { passHeaders }),
      ...(ranges && { ranges }),
    })),
    rule(({ send }) => {
      const ids = send.map(({ in: place, name }) => `${place} ${name.toLowerCase().replaceAll('_', '-')}`);
      return send.flatMap(({ in: place, name }, index) =>
        ids.indexOf(ids[index]!) < index ? [`The ${CREDENTIAL[place].what} ${name} is sent twice.`] : [],
      );
    }),
  );
}

export const upstreams = section({
  description: 'Services that guard passes requests on to, by the name that routes use: an address, or a map.',
  otherwise: 'none',
  page: 'guard.md#several-services',
  schema: (context) =>
    v.pipe(
      named(
        v.pipe(
          v.string(),
          v.regex(
            UPSTREAM_NAME,
            ({ input }) =>
              `"${printable(input)}" is not a valid name of an upstream. Use letters and digits, with - _ . between them.`,
          ),
          json({ pattern: '^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9])?$' }),
        ),
        either(
          [
            v.pipe(
              address,
              v.transform((address) => ({ address, send: [], rewriteHost: false })),
            ),
            upstreamOf(context),
          ],
          'An upstream must be an address, such as http://127.0.0.1:3000, or a map with the field "url".',
        ),
        'must be a map of names to addresses.',
      ),
      namesAtMost(MAX_UPSTREAMS, 'upstreams'),
      v.transform((named) => Object.entries(named).map(([name, upstream]): Upstream => ({ name, ...upstream }))),
    ),
  into: (upstreams) => ({ upstreams }),
});
