import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import type { IncomingMessage } from 'node:http';
import { request, type RequestOptions } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { RecentlyUsed } from '../../../graphql/index.ts';
import { embeddedIpv4, isRecord, Networks, proxyNote, readBounded, TooLong } from '../../../keys/basics/index.ts';
import { type Client, selfDescribed } from '../clients.ts';
import { OAuthError } from './oauth-error.ts';
import { freshSeconds } from './fresh-seconds.ts';

const TIMEOUT_MS = 5000;
/** Time for a DNS server to answer, in milliseconds; twice that for the second try. */
const DNS_MS = 1000;
/** Names resolved at once, and milliseconds before a failed one is tried again. */
const [MAX_LOOKUPS, FAILED_MS] = [2, 30_000];
const MAX_BYTES = 64 * 1024;
const MAX_URL_LENGTH = 500;
/** Documents fetched at once, and kept. */
const [MAX_FETCHES, MAX_DOCUMENTS] = [10, 1000];

/** Addresses that no host on the internet has (IANA's registries of special addresses). */
const SPECIAL = new Networks(
  (
    '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 ' +
    '192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3 ' +
    '2001::/23 2001:db8::/32 2002::/16 3fff::/20'
  ).split(' '),
);
const GLOBAL_V6 = new Networks(['2000::/3']);
/** IPv4 addresses as networks without IPv4 write them (RFC 6052, section 2.1). */
const NAT64 = new Networks(['64:ff9b::/96']);
/** The addresses that some proxies answer for every name (fake-ip). */
const FAKE = new Networks(['198.18.0.0/15']);

/** Checks for an address on the internet. */
export function isPublic({ address, family }: LookupAddress): boolean {
  if (NAT64.includes(address)) return isPublic({ address: embeddedIpv4(address), family: 4 });
  return !SPECIAL.includes(address) && (family === 4 || GLOBAL_V6.includes(address));
}

/** The addresses of a host, from DNS only: `lookup` would block a thread of the process while DNS does not answer. */
export async function resolveHost(
  host: string,
  signal: AbortSignal,
  resolver = new Resolver({ timeout: DNS_MS, tries: 2 }),
): Promise<LookupAddress[]> {
  signal.addEventListener('abort', () => resolver.cancel(), { once: true });
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  const of = (found: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] =>
    found.status === 'fulfilled' ? found.value.map((address) => ({ address, family })) : [];
  if (v4.status === 'rejected' && v6.status === 'rejected') throw v4.reason;
  return [...of(v4, 4), ...of(v6, 6)];
}

/** A problem of a document, in words for clients and in more detail for the log. */
class Unusable extends Error {
  readonly detail: string;

  constructor(message: string, detail = message) {
    super(message);
    this.detail = detail;
  }
}

/** The host of a document has no address: no other document of it is asked for, either. */
class Unreachable extends Error {}

/** Dependencies of fetching. */
export interface DocumentOptions {
  /** The hosts that are asked: all, or these. */
  readonly allowed: 'any' | readonly string[];
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  /** Resolves a host. An aborted signal stops waiting. */
  readonly resolve?: (host: string, signal: AbortSignal) => Promise<LookupAddress[]>;
  readonly isAllowed?: (address: LookupAddress) => boolean;
  /** Beside the usual certificates, and in milliseconds. */
  readonly ca?: RequestOptions['ca'];
  readonly timeoutMs?: number;
}

/**
 * Finds applications whose id is the URL of a document about them (draft-ietf-oauth-client-id-metadata-document).
 * Anyone can send any URL, so only hosts on the internet are contacted, at the very address that was checked.
 */
export class ClientDocuments {
  readonly #options: DocumentOptions;
  readonly #known = new RecentlyUsed<{ client: Client; until: number }>(MAX_DOCUMENTS);
  readonly #fetches = new Map<string, Promise<Client>>();
  /** Recent failures, by URL of the document or by its host. */
  readonly #failed = new RecentlyUsed<{ error: OAuthError; until: number }>(MAX_DOCUMENTS);
  /** The names that are being resolved. */
  readonly #lookups = new Set<Promise<void>>();

  constructor(options: DocumentOptions) {
    this.#options = options;
  }

  /** Checks whether an id is a URL that may be fetched. */
  allows(id: string): boolean {
    const url = id.length <= MAX_URL_LENGTH && id.startsWith('https://') ? URL.parse(id) : null;
    // Written otherwise than it is, it would not be the one that the document names.
    if (!url || url.href !== id || url.pathname === '/' || /[?#]/.test(id) || url.username !== '') return false;
    if (url.password !== '' || isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0) return false;
    return this.allowsHost(url.host);
  }

  /** Checks whether documents of a host are allowed. */
  allowsHost(host: string): boolean {
    const { allowed } = this.#options;
    return allowed === 'any' || allowed.includes(host);
  }

  /** @throws OAuthError invalid_client with the problem; temporarily_unavailable */
  find(id: string): Promise<Client> {
    const known = this.#known.get(id);
    if (known && this.#options.clock() < known.until) return Promise.resolve(known.client);
    for (const name of [id, new URL(id).host]) {
      const failed = this.#failed.get(name);
      if (failed && this.#options.clock() < failed.until) return Promise.reject(failed.error);
    }
    let fetching = this.#fetches.get(id);
    if (fetching) return fetching;
    if (this.#fetches.size >= MAX_FETCHES) throw tooMany();
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
      if (error instanceof OAuthError) throw error;
      const usable = error instanceof Unusable ? error : new Unusable('it cannot be fetched');
      // The address must be the one that was found to be of the internet, which a proxy would look up again.
      const note = error instanceof Unusable || proxyNote(id) === '' ? '' : ' It is fetched without the proxy.';
      const say = (why: string) => `The document of the client at ${new URL(id).host} cannot be used: ${why}.${note}`;
      const refused = new OAuthError('invalid_client', say(usable.message), 400, undefined, say(usable.detail));
      const name = error instanceof Unreachable ? new URL(id).host : id;
      this.#failed.set(name, { error: refused, until: clock() + FAILED_MS });
      throw refused;
    }
  }

  /** Resolves a name once few enough lookups run, abandoned ones included. */
  async #resolve(host: string, signal: AbortSignal): Promise<LookupAddress[]> {
    const { resolve = resolveHost } = this.#options;
    while (this.#lookups.size >= MAX_LOOKUPS) {
      await Promise.race([...this.#lookups, aborted(signal).catch(() => {})]);
      if (signal.aborted) throw tooMany();
    }
    const found = resolve(host, signal);
    const ended = () => void this.#lookups.delete(running);
    const running: Promise<void> = found.then(ended, ended);
    this.#lookups.add(running);
    return Promise.race([found, aborted(signal)]);
  }

  async #read(url: URL): Promise<{ text: string; seconds: number }> {
    const { isAllowed = isPublic, allowed, ca } = this.#options;
    const signal = AbortSignal.timeout(this.#options.timeoutMs ?? TIMEOUT_MS);
    const all = await this.#resolve(url.hostname, signal).catch((error: unknown) => {
      throw error instanceof OAuthError ? error : new Unreachable('no address', { cause: error });
    });
    const addresses = all.filter(isAllowed);
    if (addresses.length === 0) throw notOfInternet(all, allowed);
    const found: LookupFunction = (_host, { all }, done) =>
      all ? done(null, addresses) : done(null, addresses[0]!.address, addresses[0]!.family);
    const headers = { accept: 'application/json', 'user-agent': 'svc-api' };
    const options: RequestOptions = { lookup: found, signal, headers, agent: false, ...(ca && { ca }) };
    const answer = await new Promise<IncomingMessage>((done, fail) => {
      request(url, options, done).on('error', fail).end();
    });
    try {
      if (answer.statusCode !== 200) throw new Unusable(`it was answered with status ${answer.statusCode}`);
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

function tooMany(): OAuthError {
  return new OAuthError('temporarily_unavailable', 'Too many clients are being looked up. Try again.', 503);
}

/** @param allowed `any` hides the address, because anyone could otherwise look up addresses of a private network */
function notOfInternet(found: readonly LookupAddress[], allowed: DocumentOptions['allowed']): Unusable {
  const [address = 'none'] = found.map((each) => each.address);
  const remedy =
    'Let the DNS server of svc-api answer with its public address, or register the client in svc-api.yaml under ' +
    'clients: registered';
  const detail = `its host has the address ${address}, which is not on the internet. ${remedy}`;
  const isTold = allowed !== 'any' || FAKE.includes(address);
  return new Unusable(isTold ? detail : `its host has no address on the internet, see the log. ${remedy}`, detail);
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason as Error), { once: true }));
}

/** Reads a document. @throws Unusable */
function readDocument(id: string, text: string): Client {
  const document = parsed(text);
  if (!isRecord(document)) throw new Unusable('it is not a JSON object');
  if (document['client_id'] !== id) throw new Unusable('its client_id is not its URL');
  const grants = document['grant_types'] ?? ['authorization_code'];
  if (!offersNone(document) || 'client_secret' in document)
    throw new Unusable('it requires a client secret, but only clients without a secret are supported');
  const said = {
    name: document['client_name'],
    redirects: document['redirect_uris'],
    refreshes: Array.isArray(grants) && grants.includes('refresh_token'),
  };
  const client = selfDescribed(id, said, new URL(id).hostname);
  if (!client) throw new Unusable('it has no valid redirect_uris');
  return client;
}

/** Checks whether a client works without a secret: `token_endpoint_auth_method` is only its preference. */
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
