import * as v from 'valibot';
import { list, map, optional, required, textWith } from '../../config/schema.ts';
import { fileIn, section } from '../../config/section.ts';
import { printable } from '../../keys/basics/index.ts';
import { isNatsAddress, NATS_NAME, NATS_NAME_FORM } from './settings.ts';

const NO_SERVERS = 'The list "servers" is empty. Name at least one, as nats://127.0.0.1:4222.';

export const feed = section({
  description: 'How edges follow this server, in addition to HTTP. Read when the server starts.',
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
                        : `"${printable(address)}" is not a server: write only its address, such as nats://127.0.0.1:4222 or tls://host.`,
                    { pattern: '^(nats|tls)://[^/?#@\\s]+/?$' },
                  ),
                  NO_SERVERS,
                ),
                'Addresses of its servers, without secrets.',
              ),
              credentials: optional(
                fileIn(context, 'The field "credentials" must be a map with the field "file".'),
                'File with credentials created by nsc.',
                { otherwise: 'none' },
              ),
              name: optional(
                v.pipe(
                  v.string('must have only letters, digits, "-" and "_", at most 100.'),
                  v.regex(NATS_NAME_FORM, 'must have only letters, digits, "-" and "_", at most 100.'),
                ),
                'Prefix of its bucket and subjects.',
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
