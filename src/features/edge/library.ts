import { COMMON_OPTIONS } from '../../http/index.ts';
import {
  checkOptions,
  count,
  invalidOption,
  isLoopbackHost,
  printable,
  type Rule,
  type Rules,
  text,
  yesOrNo,
} from '../../keys/basics/index.ts';
import type { CatalogAdditions } from '../../keys/permissions/index.ts';
import { type Log, NO_LOG } from '../../log.ts';
import { libraryKeys, type OpenKeys } from '../../service/library-keys.ts';
import { additionRules, catalogOf, openKeysOver } from '../../service/open-keys.ts';
import type { EdgeFeed } from './feed-source.ts';

/** The server to follow: by its `origin`, or by a `feed`. */
export interface OpenEdgeOptions extends CatalogAdditions {
  /** The address of the server whose keys are checked. It must begin with `https:`, except on this machine. */
  origin?: string;
  /** Follows its keys through a feed instead. */
  feed?: EdgeFeed;
  /** The secret of a key of that server with EDGE:READ_ANY. */
  token?: string;
  /** The path of a file with the secret instead. It is read again when it changes. */
  tokenFile?: string;
  /**
   * How long keys are checked without an answer of the server, from `100ms` to `60s`. The server grants at most `2s`.
   * Default: `1s`.
   */
  maxStale?: string;
  /** The name of this program on the server. Default: the name of the machine. */
  name?: string;
  /** The path of the CA certificates to trust, in PEM. */
  ca?: string;
  /** The path of the client certificate, in PEM. */
  clientCert?: string;
  /** The path of its private key. */
  clientKey?: string;
  /** True to allow sending the token over a network without TLS. */
  insecure?: boolean;
  /** The number of accepted secrets to remember, at 1 KB each. Default: 100,000. */
  maxVerifiedKeys?: number;
  /** Default: nothing is logged. */
  log?: Log;
}

/** Rules of the options without additions to the catalog, and without `feed`, which the feature with that feed has. */
const OPTIONS: Rules<Omit<OpenEdgeOptions, 'feed' | keyof CatalogAdditions>> = {
  origin: text,
  token: text,
  tokenFile: text,
  maxStale: text,
  name: text,
  ca: text,
  clientCert: text,
  clientKey: text,
  insecure: yesOrNo,
  maxVerifiedKeys: count,
  log: COMMON_OPTIONS.log,
};

const noFeed: Rule<EdgeFeed> = () => 'is not available, because this program lacks the feature for it. Use "origin".';

/**
 * Follows the keys of a server, and checks them without its store. Resolves once all keys are there and up to date.
 * Methods that change or list keys reject with STORE_REQUIRED.
 * @throws KeysError OPTION_INVALID; UNAUTHENTICATED, FORBIDDEN, SERVER_INCOMPATIBLE if the server refuses; CONFIG_…
 * about its files
 */
export async function openEdge(options: OpenEdgeOptions): Promise<OpenKeys> {
  const caller = 'openEdge';
  const [{ HttpFeed }, { openEdgeStore, readMaxStale }, { feedBesideHttp }] = await Promise.all([
    import('./http-feed.ts'),
    import('./open-edge.ts'),
    import('./feed-room.ts'),
  ]);
  const beside = await feedBesideHttp();
  const rules = await additionRules();
  checkOptions<OpenEdgeOptions>(caller, options, { ...rules, ...OPTIONS, feed: beside?.rule ?? noFeed });
  const { token, tokenFile, maxStale, insecure, maxVerifiedKeys, log = NO_LOG, ...others } = options;
  const { origin, feed, name, ca, clientCert, clientKey, ...additions } = others;
  if ((origin === undefined) === (feed === undefined))
    throw invalidOption(caller, 'Either "origin" or "feed" is needed, and not both.');
  if (feed && (ca ?? clientCert ?? clientKey ?? insecure) !== undefined)
    throw invalidOption(caller, '"ca", "clientCert", "clientKey" and "insecure" go with "origin", not with "feed".');
  if ((token === undefined) === (tokenFile === undefined))
    throw invalidOption(caller, 'Either "token" or "tokenFile" is needed, and not both.');
  if ((clientCert === undefined) !== (clientKey === undefined))
    throw invalidOption(caller, '"clientCert" and "clientKey" go together.');
  const catalog = catalogOf(caller, additions);
  const leaseMs = readMaxStale(maxStale);
  if (typeof leaseMs === 'object')
    throw invalidOption(caller, `"maxStale" is "${printable(maxStale!)}". ${leaseMs.refusal}`);
  const shown = { token: token ?? { file: tokenFile! }, leaseMs, name, log };
  const source = feed
    ? beside!.open(feed, shown)
    : new HttpFeed({ origin: addressOf(caller, origin!, insecure), ca, clientCert, clientKey, ...shown });
  const store = await openEdgeStore(source, { log });
  return libraryKeys(openKeysOver(store, catalog, { rules, maxVerifiedKeys }));
}

/** The address of a server, without a trailing slash. @throws KeysError OPTION_INVALID */
function addressOf(caller: string, origin: string, insecure = false): string {
  const url = URL.parse(origin);
  const isSafe =
    url?.protocol === 'https:' || (url?.protocol === 'http:' && (insecure || isLoopbackHost(url.hostname)));
  if (url && isSafe && url.username + url.password + url.search + url.hash === '')
    return url.origin + url.pathname.replace(/\/+$/, '');
  throw invalidOption(
    caller,
    `"origin" is "${printable(origin.replace(/\/\/.*@/s, '//…@'))}". Give the address of a server, such as ` +
      'https://keys.example.org: off this machine with https, unless "insecure" is true.',
  );
}
