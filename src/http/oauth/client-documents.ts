import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import type { IncomingMessage } from 'node:http';
import { request, type RequestOptions } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { RecentlyUsed } from '../../graphql/index.ts';
import { freshSeconds, isRecord, Networks, proxyNote, readBounded, TooLong } from '../../keys/basics/index.ts';
import { type Client, selfDescribed } from '../../keys/consent/index.ts';
import { OAuthError } from './oauth-error.ts';

const TIMEOUT_MS = 5000;
const MAX_BYTES = 64 * 1024;
const MAX_URL_LENGTH = 500;
/** How many are fetched at once, and remembered. */
const [MAX_FETCHES, MAX_DOCUMENTS] = [10, 1000];

/** What no host of the internet has (IANA's registries of special addresses). */
const SPECIAL = new Networks(
  (
    '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 ' +
    '192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3 ' +
    '2001::/23 2001:db8::/32 2002::/16 3fff::/20'
  ).split(' '),
);
const GLOBAL_V6 = new Networks(['2000::/3']);

/** Whether an address is one of the internet. */
export function isPublic({ address, family }: LookupAddress): boolean {
  return !SPECIAL.includes(address) && (family === 4 || GLOBAL_V6.includes(address));
}

/** Why a document is of no use, in words that may be shown. */
class Unusable extends Error {}

/** What fetching needs from outside. */
export interface DocumentOptions {
  /** The hosts that are asked: all, or these. */
  readonly allowed: 'any' | readonly string[];
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  /** The addresses of a host. */
  readonly resolve?: (host: string) => Promise<LookupAddress[]>;
  readonly isAllowed?: (address: LookupAddress) => boolean;
  /** Beside the usual certificates, and in milliseconds. */
  readonly ca?: RequestOptions['ca'];
  readonly timeoutMs?: number;
}

/**
 * Applications whose id is the URL of a document that describes them (draft-ietf-oauth-client-id-metadata-document).
 * Anybody may name any URL: nothing is asked but hosts of the internet, by the very address that was found to be one.
 */
export class ClientDocuments {
  readonly #options: DocumentOptions;
  readonly #known = new RecentlyUsed<{ client: Client; until: number }>(MAX_DOCUMENTS);
  readonly #fetches = new Map<string, Promise<Client>>();

  constructor(options: DocumentOptions) {
    this.#options = options;
  }

  /** Whether an id is such a URL that may be asked. */
  allows(id: string): boolean {
    const url = id.length <= MAX_URL_LENGTH && id.startsWith('https://') ? URL.parse(id) : null;
    const { allowed } = this.#options;
    // Written otherwise than it is, it would not be the one that the document names.
    if (!url || url.href !== id || url.pathname === '/' || /[?#]/.test(id) || url.username !== '') return false;
    if (url.password !== '' || isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0) return false;
    return allowed === 'any' || allowed.includes(url.host);
  }

  /** @throws OAuthError invalid_client, which says what is wrong; temporarily_unavailable */
  find(id: string): Promise<Client> {
    const known = this.#known.get(id);
    if (known && this.#options.clock() < known.until) return Promise.resolve(known.client);
    let fetching = this.#fetches.get(id);
    if (fetching) return fetching;
    if (this.#fetches.size >= MAX_FETCHES)
      throw new OAuthError('temporarily_unavailable', 'Too many clients are looked up at once. Try again.', 503);
    fetching = this.#fetch(id).finally(() => this.#fetches.delete(id));
    this.#fetches.set(id, fetching);
    return fetching;
  }

  async #fetch(id: string): Promise<Client> {
    const { clock } = this.#options;
    try {
      const { text, seconds } = await this.#read(new URL(id));
      const client = readDocument(id, text);
      this.#known.set(id, { client, until: clock() + seconds * 1000 });
      return client;
    } catch (error) {
      const why = error instanceof Unusable ? error.message : 'it cannot be fetched';
      // The address must be the one that was found to be of the internet, which a proxy would look up again.
      const note = error instanceof Unusable || proxyNote(id) === '' ? '' : ' It is fetched without the proxy.';
      throw new OAuthError('invalid_client', `The document of the client cannot be used: ${why}.${note}`);
    }
  }

  async #read(url: URL): Promise<{ text: string; seconds: number }> {
    const { resolve = (host) => lookup(host, { all: true }), isAllowed = isPublic, ca } = this.#options;
    const signal = AbortSignal.timeout(this.#options.timeoutMs ?? TIMEOUT_MS);
    const addresses = await Promise.race([resolve(url.hostname), aborted(signal)]);
    if (addresses.length === 0 || !addresses.every(isAllowed))
      throw new Unusable('its host is not one of the internet');
    const found: LookupFunction = (_host, { all }, done) =>
      all ? done(null, addresses) : done(null, addresses[0]!.address, addresses[0]!.family);
    const headers = { accept: 'application/json', 'user-agent': 'svc-api' };
    const options: RequestOptions = { lookup: found, signal, headers, agent: false, ...(ca && { ca }) };
    const answer = await new Promise<IncomingMessage>((done, fail) => {
      request(url, options, done).on('error', fail).end();
    });
    try {
      if (answer.statusCode !== 200) throw new Unusable(`it is answered with the status ${answer.statusCode}`);
      if (!/^application\/(?:[\w.-]+\+)?json *(?:;|$)/i.test(answer.headers['content-type'] ?? ''))
        throw new Unusable('it is not JSON');
      const text = String((await readBounded(answer, MAX_BYTES)) ?? '');
      return { text, seconds: freshSeconds((name) => answer.headers[name] as string | undefined) };
    } catch (error) {
      throw error instanceof TooLong ? new Unusable(error.message) : error;
    } finally {
      answer.destroy();
    }
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason as Error), { once: true }));
}

/** What a document says. @throws Unusable */
function readDocument(id: string, text: string): Client {
  const document = parsed(text);
  if (!isRecord(document)) throw new Unusable('it is not a JSON object');
  if (document['client_id'] !== id) throw new Unusable('its client_id is another one');
  const grants = document['grant_types'] ?? ['authorization_code'];
  if (!offersNone(document) || 'client_secret' in document)
    throw new Unusable('it asks for a client with a secret, where only clients without one are known');
  const said = {
    name: document['client_name'],
    redirects: document['redirect_uris'],
    refreshes: Array.isArray(grants) && grants.includes('refresh_token'),
  };
  const client = selfDescribed(id, said, new URL(id).hostname);
  if (!client) throw new Unusable('none of its redirect_uris can be used');
  return client;
}

/** Whether a client can do without a secret: `token_endpoint_auth_method` is the one that it prefers. */
function offersNone({
  token_endpoint_auth_method: preferred = 'none',
  token_endpoint_auth_methods_supported: supported,
}: Record<string, unknown>): boolean {
  return preferred === 'none' || (Array.isArray(supported) && supported.includes('none'));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
