/** A request by which a proxy asks whether another one may pass. */
export interface AskingRequest {
  readonly method: string;
  /** Names and values in turn, as Node has them. */
  readonly rawHeaders: readonly string[];
  /** What follows the endpoint in the URL, where the proxy puts the target of the other request there. */
  readonly target: string;
}

/** What a proxy says of the other request. */
export interface Said {
  readonly method: string;
  /** The value of Host. */
  readonly host: string;
  /** A path, with or without a query. */
  readonly target: string;
}

/** How a kind of proxy asks. */
export interface Contract {
  /** What it says, or why that cannot be known. */
  read(asking: AskingRequest): Said | { readonly fault: string };
  /** Whether the client gets an answer of status 429 as it is. */
  readonly passes429: boolean;
}

/** The headers that say it. */
interface SayingHeaders extends Said {
  /** Decides nothing, but a proxy that sets it does so always. */
  readonly scheme?: string;
}

const ORIGINAL: SayingHeaders = { method: 'X-Original-Method', host: 'X-Forwarded-Host', target: 'X-Original-URI' };
const FORWARDED: SayingHeaders = {
  method: 'X-Forwarded-Method',
  host: 'X-Forwarded-Host',
  target: 'X-Forwarded-Uri',
  scheme: 'X-Forwarded-Proto',
};
/** WebSocket's schemes are what some proxies write of a handshake. */
const SCHEMES: ReadonlySet<string> = new Set(['http', 'https', 'ws', 'wss']);

/**
 * The contracts by the names of their endpoints. Each believes the headers that its proxy always sets, and no other:
 * the client may have written those.
 */
export const CONTRACTS: ReadonlyMap<string, Contract> = new Map([
  ['nginx', { read: byHeaders(ORIGINAL), passes429: false }],
  ['caddy', { read: byHeaders(FORWARDED), passes429: true }],
  ['traefik', { read: byHeaders(FORWARDED), passes429: true }],
  ['haproxy', { read: byHeaders(FORWARDED), passes429: true }],
  ['envoy', { read: asItself, passes429: true }],
]);

function byHeaders(names: SayingHeaders): Contract['read'] {
  const parts = Object.entries(names) as [keyof SayingHeaders, string][];
  return ({ rawHeaders }) => {
    const said = { method: '', host: '', target: '', scheme: 'http' };
    for (const [part, name] of parts) {
      const value = onlyValue(rawHeaders, name);
      if (typeof value !== 'string') return value;
      said[part] = value;
    }
    return SCHEMES.has(said.scheme) ? said : { fault: `${names.scheme} is neither http nor https` };
  };
}

/** Envoy asks with the method and Host of the request itself, and its target behind a prefix. */
function asItself({ method, rawHeaders, target }: AskingRequest): Said | { fault: string } {
  const host = onlyValue(rawHeaders, 'Host');
  return typeof host === 'string' ? { method, host, target } : host;
}

/** The value of a header that must be there once. */
function onlyValue(rawHeaders: readonly string[], name: string): string | { readonly fault: string } {
  const lowerCase = name.toLowerCase();
  let value: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const here = rawHeaders[index]!;
    if (here.length !== name.length || here.toLowerCase() !== lowerCase) continue;
    if (value !== undefined) return { fault: `${name} is there twice` };
    value = rawHeaders[index + 1]!;
  }
  return value ?? { fault: `${name} is missing` };
}
