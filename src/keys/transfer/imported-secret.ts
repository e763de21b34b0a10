import { readDigest } from '../secret/digest.ts';
import type { Issue } from '../errors.ts';
import type { ImportedFields } from './imported-fields.ts';
import {
  createImportedId,
  digestSecret,
  hasOwnForm,
  isImportedId,
  publicIdOfPrefix,
  type RandomBytes,
  readSecret,
} from '../secret/secret.ts';

/** What an `Authorization: Bearer` header can carry. Servers and proxies limit its length. */
const SENDABLE = /^[\x21-\x7e]{1,8000}$/;
/** A shorter secret may be guessed. */
const MIN_SECRET_LENGTH = 20;

/** What is kept of the secret of an imported key. */
export interface ImportedSecret {
  publicId: string;
  /** See `digestSecret`. */
  digest: string;
  /** Whether the secret is so short that it may be guessed. */
  guessable: boolean;
}

/** Reads the secret of an imported key, or its digest. A secret in our own format keeps its public id. */
export function readImportedSecret(
  { secret, sha256, prefix }: Pick<ImportedFields, 'secret' | 'sha256' | 'prefix'>,
  randomBytes: RandomBytes,
): ImportedSecret | Issue {
  const prefixed = publicIdOfPrefix(prefix ?? '');
  if (prefix !== undefined && prefixed === undefined)
    return issue(
      '"prefix" is not an svc-api prefix, such as svc_0a1B2c3D4e5F_…. Leave it out for a key that was made elsewhere.',
    );
  if (secret === undefined) {
    const digest = readDigest(sha256 ?? '');
    if (digest === undefined) return issue('"sha256" is not a SHA-256 in hex, base64 or base64url.');
    return { publicId: prefixed ?? createImportedId(randomBytes), digest, guessable: false };
  }
  if (!SENDABLE.test(secret))
    return issue(
      'The secret must be 1 to 8,000 visible ASCII characters without spaces: a request can carry no other.',
    );
  const own = readSecret(secret)?.publicId;
  if (own === undefined && hasOwnForm(secret))
    return issue('The secret has the form of an svc-api key, but its checksum is wrong: it was mistyped.');
  if (prefixed !== undefined && (own === undefined ? !isImportedId(prefixed) : prefixed !== own))
    return issue('"prefix" does not belong to the secret. Leave it out.');
  return {
    publicId: own ?? prefixed ?? createImportedId(randomBytes),
    digest: digestSecret(secret),
    guessable: secret.length < MIN_SECRET_LENGTH,
  };
}

function issue(message: string): Issue {
  return { code: 'SECRET_INVALID', message };
}
