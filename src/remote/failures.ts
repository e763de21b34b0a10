import { KeysError } from '../keys/errors.ts';
import { printable } from '../keys/text.ts';

/** Failures before anything was sent. */
const BEFORE = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'bad port']);
/** Failures of OpenSSL that are about the certificate. */
const CERTIFICATE = /CERT|SIGNATURE|ISSUER/;
const UNKNOWN = 'Whether the change was made is not known: look at the keys before you try again.';

/**
 * The error for a server that gave no answer.
 * @param changes whether a change was asked for
 */
export function unreachable(server: string, error: unknown, changes: boolean): KeysError {
  const code = codeOf(error);
  const isUntrusted = CERTIFICATE.test(code);
  const what = isUntrusted
    ? `has a certificate that is not trusted here (${code}). NODE_EXTRA_CA_CERTS names a file with others to trust.`
    : code === 'TimeoutError'
      ? 'did not answer in time.'
      : `cannot be reached (${code}). Check its address, and whether it runs.`;
  const doubt = changes && !isUntrusted && !BEFORE.has(code) ? ` ${UNKNOWN}` : '';
  return new KeysError('SERVER_UNREACHABLE', `The server ${server} ${what}${doubt}`, { cause: error });
}

/** The code of what went wrong, which `fetch` has in the cause; of a port that it never uses, its message. */
function codeOf(error: unknown): string {
  const { name, cause } = error as Error & {
    cause?: { code?: string; message?: string; errors?: { code?: string }[] };
  };
  if (name === 'TimeoutError' || name === 'AbortError') return 'TimeoutError';
  const code = cause?.code ?? cause?.errors?.[0]?.code ?? cause?.message ?? 'no connection';
  return printable(code, 100);
}
