import { createPublicKey } from 'node:crypto';
import { isRecord, KeysError, printable, readPublicFile } from '../../keys/basics/index.ts';

/** Members that only a private key has, or one that both sides have (RFC 7518, sections 6.2.2, 6.3.2 and 6.4). */
const PRIVATE = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];
/** The most keys of an issuer, and how long those of RSA are at least, in bits (RFC 7518, section 3.3). */
const [MAX_KEYS, MIN_RSA_BITS] = [100, 2048];

/** A public key in JSON (RFC 7517). The type of Node has another name in each of its versions. */
export interface PublicJwk {
  readonly kty?: string;
  readonly [member: string]: unknown;
}

/**
 * Reads the public keys of an issuer from a file (RFC 7517, section 5): all that is in it can be used.
 * @throws KeysError CONFIG_INVALID, CONFIG_UNAVAILABLE, CONFIG_INSECURE
 */
export function readKeySet(file: string): { keys: PublicJwk[] } {
  const what = 'The file of the keys of an issuer';
  const text = readPublicFile(file, { what, remedy: 'Correct "jwks".' });
  const invalid = (problem: string) =>
    new KeysError('CONFIG_INVALID', `${what}, ${printable(file, 200)}, ${problem}. Write the JSON of its JWK set.`);
  let set: unknown;
  try {
    set = JSON.parse(text);
  } catch {
    throw invalid('is not JSON');
  }
  const keys: unknown = isRecord(set) ? set['keys'] : undefined;
  if (!Array.isArray(keys)) throw invalid('has no list "keys"');
  if (keys.length === 0) throw invalid('has no key');
  if (keys.length > MAX_KEYS) throw invalid(`has ${keys.length} keys; at most ${MAX_KEYS} are allowed`);
  for (const [index, key] of keys.entries()) {
    const problem = problemOfPublicKey(key);
    if (problem !== undefined) throw invalid(`must have only public keys: number ${index + 1} ${problem}`);
  }
  return { keys };
}

function problemOfPublicKey(key: unknown): string | undefined {
  if (!isRecord(key)) return 'is not a key';
  if (key['kty'] === 'oct') return 'is a shared key, with which anyone who reads it could sign';
  if (PRIVATE.some((member) => Object.hasOwn(key, member)))
    return 'is a private key, which only the issuer should have';
  try {
    const { modulusLength = MIN_RSA_BITS } = createPublicKey({ key, format: 'jwk' }).asymmetricKeyDetails!;
    return modulusLength < MIN_RSA_BITS ? `has fewer than ${MIN_RSA_BITS} bits` : undefined;
  } catch {
    return 'is not a key of RSA, EC or OKP';
  }
}
