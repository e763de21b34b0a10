import { createHmac } from 'node:crypto';

/** A key that signs, as bytes. */
export type SigningKey = Buffer;

const SECRET = /^(?:whsec_)?([0-9A-Za-z+/]{32,88}={0,2})$/;
/** What Standard Webhooks asks for. */
const [MIN_BYTES, MAX_BYTES] = [24, 64];

/** The key in a secret in the form of Standard Webhooks: `whsec_` and 24 to 64 bytes in base64; undefined otherwise. */
export function readSigningKey(text: string): SigningKey | undefined {
  const base64 = SECRET.exec(text)?.[1];
  if (base64 === undefined) return undefined;
  const key = Buffer.from(base64, 'base64');
  const isWhole = key.toString('base64').replace(/=+$/, '') === base64.replace(/=+$/, '');
  return isWhole && key.length >= MIN_BYTES && key.length <= MAX_BYTES ? key : undefined;
}

/**
 * The headers by which a receiver knows a message (Standard Webhooks 1.0): signed with each key, so that one can take
 * the place of another.
 * @param at milliseconds since 1970
 */
export function signatureHeaders(
  { id, body }: { id: string; body: string },
  keys: readonly SigningKey[],
  at: number,
): Record<string, string> {
  const timestamp = String(Math.floor(at / 1000));
  const signatures = keys.map(
    (key) => `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`,
  );
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}
