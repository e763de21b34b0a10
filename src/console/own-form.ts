import type { Context } from 'hono';
import { RequestRefused } from '../http/index.ts';
import type { SeenOrigin } from './session-cookie.ts';

/**
 * Refuses a form that no page of ours has sent (Fetch Metadata). The cookie of a session does not come with those of
 * other sites, but with those of other ports and of neighbouring hosts.
 * @throws RequestRefused
 */
export function requireOwnForm(c: Context, { origin }: SeenOrigin): void {
  const site = c.req.header('sec-fetch-site');
  // Browsers leave it out where there is neither TLS nor loopback.
  const isOwn = site === undefined ? c.req.header('origin') === origin : site === 'same-origin';
  if (!isOwn) throw new RequestRefused(403, 'FORBIDDEN', 'The form was sent by another page. Open this page again.');
}
