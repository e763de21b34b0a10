const HEX = /^[0-9a-f]{64}$/i;
const BASE64 = /^(?:[0-9A-Za-z+/]{43}|[0-9A-Za-z_-]{43})=?$/;

/** Parses a SHA-256 in hex, base64 or base64url into a digest as stored; undefined if it is not one. */
export function readDigest(text: string): string | undefined {
  const encoded = text.trim().replace(/^sha256:/i, '');
  if (HEX.test(encoded)) return Buffer.from(encoded, 'hex').toString('base64url');
  if (!BASE64.test(encoded)) return undefined;
  // The last character has two unused bits; if one is set, it was mistyped.
  const canonical = encoded.replace('=', '').replaceAll('+', '-').replaceAll('/', '_');
  return Buffer.from(encoded, 'base64').toString('base64url') === canonical ? canonical : undefined;
}

/** The SHA-256 in a stored digest, in hex. */
export function toHex(digest: string): string {
  return Buffer.from(digest, 'base64url').toString('hex');
}
