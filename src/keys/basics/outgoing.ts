import { isLoopbackHost } from './networks.ts';
import { printable } from './values.ts';

/**
 * A sentence, with a blank before it, on the proxy that the environment names for an address that did not answer; empty
 * if it names none. Node uses it only with NODE_USE_ENV_PROXY.
 */
export function proxyNote(url: string, env: NodeJS.ProcessEnv = process.env): string {
  const { protocol, hostname } = new URL(url);
  const name = protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const isSet = Boolean(env[name.toLowerCase()] || env[name]);
  if (!isSet || isLoopbackHost(hostname) || (env['no_proxy'] ?? env['NO_PROXY']) === '*') return '';
  const isUsed = env['NODE_USE_ENV_PROXY'] === '1' || env['NODE_OPTIONS']?.includes('--use-env-proxy');
  return isUsed
    ? ` It was asked through the proxy of ${name}, unless NO_PROXY names it.`
    : ` The proxy of ${name} was not used: set NODE_USE_ENV_PROXY=1 to use it.`;
}

/** Why `fetch` got no answer: the code or the text of the cause, which can also be a DOMException with a number. */
export function fetchFailure(error: unknown): string {
  const { message, cause } = error as Error & {
    cause?: { code?: unknown; message?: unknown; errors?: { code?: unknown }[] };
  };
  const texts = [cause?.code, cause?.errors?.[0]?.code, cause?.message];
  return printable(texts.find((text): text is string => typeof text === 'string' && text !== '') ?? message, 300);
}
