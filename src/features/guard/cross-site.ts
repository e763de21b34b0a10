import { type ErrorReply, errorReply, type Received } from '../../http/index.ts';
import { isReading, type RequestParts } from '../routes/index.ts';

/** The site of the page that made a request: the same, another, or unknown. */
export type AskingPage = 'own' | 'foreign' | 'unsaid';

/**
 * Tells the site of the page that made a request. Browsers send `Sec-Fetch-Site`; older ones, and all of them without
 * TLS, send `Origin` alone. Requests that only read pass, unless they open a WebSocket.
 */
export function askingPage(
  request: Pick<Received, 'header'>,
  { method, host }: Pick<RequestParts, 'method' | 'host'>,
): AskingPage {
  if (isReading(method) && !isUpgrade(request)) return 'own';
  const site = request.header('sec-fetch-site');
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return 'foreign';
  const origin = request.header('origin');
  if (origin === undefined) return site === undefined ? 'unsaid' : 'own';
  return isForeign(origin, host, site === undefined) ? 'foreign' : 'own';
}

/** Proxies that ask do not pass on `Upgrade` itself. */
function isUpgrade(request: Pick<Received, 'header'>): boolean {
  return ['upgrade', 'sec-websocket-key', 'sec-websocket-version'].some((name) => request.header(name) !== undefined);
}

/** @param withPort treats another port as foreign: only without better headers, because a proxy may drop the port */
function isForeign(origin: string, host: string, withPort: boolean): boolean {
  const theirs = URL.parse(origin);
  if (!theirs || !/^https?:$/.test(theirs.protocol)) return true;
  const own = URL.parse(`${theirs.protocol}//${host}`);
  return own === null || (withPort ? own.host !== theirs.host : own.hostname !== theirs.hostname);
}

/** Reason of the refusal, for the log. */
export const BY_BROWSER = 'it may come from another site, and a browser adds its credentials by itself';

/** The reply to a request of another site whose key a browser has sent by itself. */
export function crossSiteRefused(page: AskingPage): ErrorReply {
  const message =
    page === 'unsaid'
      ? 'This request comes from a signed-in browser but has neither Origin nor Sec-Fetch-Site, so its page is unknown. ' +
        'Browsers send one of these headers; programs must send a key.'
      : 'A page of another site sent this request, with Basic authentication or a session, which browsers add by ' +
        'themselves. Send the key in another header.';
  return errorReply('FORBIDDEN', message);
}
