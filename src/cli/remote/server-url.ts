import { KeysError } from '../../keys/errors.ts';
import { printable } from '../../keys/text.ts';

const EXAMPLE = 'such as https://keys.example.org';

/**
 * The address of a server in the form in which it is compared: scheme, host, port and path, without the path of
 * GraphQL and without a slash at its end.
 * @throws KeysError USAGE
 */
export function readServerUrl(text: string): string {
  const url = URL.parse(text.trim());
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    const shown = printable(text.replace(/\/\/.*@/s, '//…@'));
    throw invalid(`"${shown}" is not the address of a server. Write it with its scheme, ${EXAMPLE}.`);
  }
  // The text may hold a password, and is not shown.
  if (url.username !== '' || url.password !== '')
    throw invalid(`The address of the server holds a user or a password. Leave them out, and set SVC_API_KEY.`);
  if (url.search !== '' || url.hash !== '')
    throw invalid(`The address of the server has a query or a fragment. Leave them out: write ${url.origin}.`);
  const path = url.pathname.replace(/\/+$/, '').replace(/\/graphql$/, '');
  return url.origin + path;
}

/** Whether requests to a server stay on this machine. */
export function isLoopback(server: string): boolean {
  const { hostname } = new URL(server);
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
}

function invalid(message: string): KeysError {
  return new KeysError('USAGE', message);
}
