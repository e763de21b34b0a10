import { resolve } from 'node:path';
import { list, options, required, type Rule, text, withoutUndefined } from '../../keys/basics/index.ts';
import type { FeedRoom } from '../edge/index.ts';
import { NatsFeed } from './nats-feed.ts';
import { isNatsAddress, NATS_NAME, NATS_NAME_FORM, type NatsFeedOptions } from './settings.ts';

const address: Rule<string> = (value) =>
  typeof value === 'string' && isNatsAddress(value)
    ? undefined
    : 'is not a server of NATS. Write it as nats://127.0.0.1:4222 or tls://host, alone.';
const prefix: Rule<string> = (value) =>
  typeof value === 'string' && NATS_NAME_FORM.test(value)
    ? undefined
    : 'must be of letters, digits, "-" and "_", and at most 100 long.';

/** Follows an origin over NATS. */
export const feedByNats: FeedRoom = {
  rule: options({
    nats: required(
      options<NatsFeedOptions>({
        servers: required(list(address, 1)),
        credentials: options({ file: required(text) }),
        name: prefix,
      }),
    ),
  }),
  placeIn: ({ feed }) => feed && { nats: withoutUndefined(feed.nats) },
  open({ nats: { servers, credentials, name = NATS_NAME } }, shown) {
    const settings = { servers, credentials: credentials && { file: resolve(credentials.file) }, name };
    return new NatsFeed({ settings, ...shown });
  },
};
