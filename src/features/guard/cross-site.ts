import { errorReply, type Received, type Reply } from '../../http/index.ts';
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

/** @param withPort whether another port is foreign, too: where a browser says more, a proxy may have left it out */
function isForeign(origin: string, host: string, withPort: boolean): boolean {
  const theirs = URL.parse(origin);
  if (!theirs || !/^https?:$/.test(theirs.protocol)) return true;
  const own = URL.parse(`${theirs.protocol}//${host}`);
  return own === null || (withPort ? own.host !== theirs.host : own.hostname !== theirs.hostname);
}

/** Why such a request is refused, for the log. */
export const BY_BROWSER =
  'another site made it, or it does not say, and a browser sends by itself what it is accepted by';

/** The reply to a request of another site whose key a browser has sent by itself. */
export function crossSiteRefused(page: AskingPage): Reply {
  const message =
    page === 'unsaid'
      ? 'This request came without a key, for somebody who has signed in, and says neither by Origin nor by ' +
        'Sec-Fetch-Site which page made it. Browsers send one of them; programs send a key.'
      : 'A page of another site made this request, and its key came by Basic authentication or by a session, which ' +
        'browsers send by themselves. Send the key in another header.';
  return errorReply('FORBIDDEN', message);
}
