import { errorReply, type Received, type Reply } from '../http/index.ts';
import { isReading, type RequestParts } from '../routes/index.ts';

/**
 * Whether a page of another site may have made a request that does something, by what browsers say: `Sec-Fetch-Site`,
 * and older ones, or all where there is no TLS, `Origin` alone. One that reads is not looked at, unless it opens a
 * WebSocket.
 */
export function isCrossSite(
  request: Pick<Received, 'header'>,
  { method, host }: Pick<RequestParts, 'method' | 'host'>,
): boolean {
  if (isReading(method) && !isUpgrade(request)) return false;
  const site = request.header('sec-fetch-site');
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  const origin = request.header('origin');
  return origin !== undefined && isForeign(origin, host, site === undefined);
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
export const BY_BROWSER = 'another site made it, and its key came by Basic or by a session';

/** The reply to a request of another site whose key a browser has sent by itself. */
export function crossSiteRefused(): Reply {
  const message =
    'A page of another site made this request, and its key came by Basic authentication or by a session, which ' +
    'browsers send by themselves. Send the key in another header.';
  return errorReply(403, 'FORBIDDEN', message);
}
