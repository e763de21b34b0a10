/**
 * Reads an address that a key is limited to (RFC 8707, section 2): http or https, without a query or fragment. A
 * trailing slash is removed. Undefined for any other text.
 */
export function readAudience(text: string): string | undefined {
  const url = text.length <= MAX_AUDIENCE_LENGTH && /^https?:\/\/[!-~]+$/i.test(text) ? URL.parse(text) : null;
  if (!url || /[?#\\]/.test(text) || url.username !== '' || url.password !== '') return undefined;
  return (url.origin + url.pathname).replace(/\/$/, '');
}

const MAX_AUDIENCE_LENGTH = 500;

/** True if an address, as read by `readAudience`, equals the audience of a key or is a path below it. */
export function isFor(audience: string, address: string): boolean {
  return address === audience || address.startsWith(`${audience}/`);
}
