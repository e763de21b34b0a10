import type { Handle } from '@sveltejs/kit/hooks';
import { openKeys, type OpenKeys } from 'svc-api';

/** Opened with the first request, since SvelteKit also loads this file during the build. */
let opened: Promise<OpenKeys> | undefined;

export const handle: Handle = async ({ event, resolve }) => {
  if (!event.url.pathname.startsWith('/backups')) return resolve(event);
  const keys = await (opened ??= openKeys());
  const address = event.getClientAddress();
  const checked = await keys.check(event.request, { permission: 'SERVICES:READ_ANY', address });
  if (!checked.ok) return checked.response();
  event.locals.principal = checked.principal;
  event.setHeaders(checked.headers);
  return resolve(event);
};
