import { isLoopbackHost } from './networks.ts';
import { printable } from './text.ts';

/**
 * A sentence, after a space, about the proxy that the environment names for an address that did not answer; empty
 * without a proxy. Node uses it only with NODE_USE_ENV_PROXY.
 */
export function proxyNote(url: string, env: NodeJS.ProcessEnv = process.env): string {
  const { protocol, hostname } = new URL(url);
  const name = protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const isSet = Boolean(env[name.toLowerCase()] || env[name]);
  if (!isSet || isLoopbackHost(hostname) || (env['no_proxy'] ?? env['NO_PROXY']) === '*') return '';
  const isUsed = env['NODE_USE_ENV_PROXY'] === '1' || env['NODE_OPTIONS']?.includes('--use-env-proxy');
  return isUsed
    ? ` The request went through the proxy in ${name}, unless NO_PROXY excludes it.`
    : ` The proxy in ${name} was not used: set NODE_USE_ENV_PROXY=1 to use it.`;
}

/** Why `fetch` got no answer: the code or the text of the cause, which can also be a DOMException with a number. */
export function fetchFailure(error: unknown): string {
  const { message, cause } = error as Error & {
    cause?: { code?: unknown; message?: unknown; errors?: { code?: unknown }[] };
  };
  const texts = [cause?.code, cause?.errors?.[0]?.code, cause?.message];
  return printable(texts.find((text): text is string => typeof text === 'string' && text !== '') ?? message, 300);
}

/** The delay that a header asks for (RFC 9110, section 10.2.3), in milliseconds; undefined if it cannot be read. */
export function readRetryAfter(text: string, now: number): number | undefined {
  if (/^\d{1,9}$/.test(text.trim())) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

/** The error for an answer that exceeds its limit. */
export class TooLong extends Error {
  constructor(maxBytes: number) {
    super(`the answer is longer than ${maxBytes / 1024} KiB`);
  }
}

/** The body of another server's answer; null if it has none. @throws TooLong */
export async function readBounded(
  body: AsyncIterable<Uint8Array> | null,
  maxBytes: number,
): Promise<Buffer<ArrayBuffer> | null> {
  if (!body) return null;
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of body) {
    length += part.length;
    if (length > maxBytes) throw new TooLong(maxBytes);
    parts.push(part);
  }
  return Buffer.concat(parts);
}
