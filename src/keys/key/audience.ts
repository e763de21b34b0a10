/**
 * Reads an address that a key can be for (RFC 8707, section 2), without a slash at its end: http or https, without a
 * query or fragment. Undefined for any other text.
 */
export function readAudience(text: string): string | undefined {
  const url = text.length <= MAX_AUDIENCE_LENGTH && /^https?:\/\/[!-~]+$/i.test(text) ? URL.parse(text) : null;
  if (!url || /[?#\\]/.test(text) || url.username !== '' || url.password !== '') return undefined;
  return (url.origin + url.pathname).replace(/\/$/, '');
}

const MAX_AUDIENCE_LENGTH = 500;

/** Tells whether an address, as `readAudience` has it, is the one that a key is for, or a path under it. */
export function isFor(audience: string, address: string): boolean {
  return address === audience || address.startsWith(`${audience}/`);
}
