import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import type { PoolConfig } from 'pg';
import { KeysError } from '../../keys/errors.ts';

/** The parameters of libpq for TLS. */
export interface TlsParameters {
  sslmode: string | undefined;
  /** Paths. */
  sslrootcert: string | undefined;
  sslcert: string | undefined;
  sslkey: string | undefined;
  /** The password of the client's key. */
  sslpassword: string | undefined;
}

const MODES = new Set(['disable', 'require', 'verify-ca', 'verify-full']);

/**
 * TLS options for `sslmode` as libpq defines it, but for its default: a server on another machine must prove who it is.
 * @throws KeysError USAGE, STORE_UNAVAILABLE
 */
export function tlsOf(
  host: string,
  { sslrootcert, sslcert, sslkey, sslpassword, ...given }: TlsParameters,
): PoolConfig['ssl'] {
  const isNear = isOnThisMachine(host);
  const sslmode = given.sslmode || (isNear && !sslrootcert ? 'disable' : 'verify-full');
  if (isNear && /^(allow|prefer)$/.test(sslmode)) return false;
  if (!MODES.has(sslmode))
    throw new KeysError(
      'USAGE',
      'The sslmode of the key store must be verify-full, verify-ca, require or disable: with allow or prefer, ' +
        'whoever is in between could switch encryption off. Write sslmode=verify-full.',
    );
  if (sslmode === 'disable') return false;
  return {
    rejectUnauthorized: sslmode !== 'require' || sslrootcert !== undefined,
    ...(sslrootcert && sslrootcert !== 'system' && { ca: contentOf(sslrootcert) }),
    ...(sslcert && { cert: contentOf(sslcert) }),
    ...(sslkey && { key: contentOf(sslkey) }),
    ...(sslpassword && { passphrase: sslpassword }),
    // Only verify-full checks the name of the host.
    ...(sslmode !== 'verify-full' && { checkServerIdentity: () => undefined }),
  };
}

/** Whether a host is a Unix socket or a loopback address: nobody else can listen in. */
function isOnThisMachine(host: string): boolean {
  const name = host.toLowerCase();
  if (name.startsWith('/') || name === 'localhost' || name === '::1') return true;
  return isIP(name) === 4 && name.startsWith('127.');
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new KeysError('STORE_UNAVAILABLE', `The certificate ${path} cannot be read. Check the path and its mode.`, {
      cause: error,
    });
  }
}
