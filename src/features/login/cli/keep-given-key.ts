import { keepKey } from './credentials.ts';
import { isKeysError, KeysError } from '../../../keys/basics/index.ts';
import { prefixOf, readSecret } from '../../../keys/secret/index.ts';

/**
 * Keeps a key that a server has just issued. If that fails, the key is revoked there, as its secret is lost.
 * @returns the path of its file
 * @throws KeysError CREDENTIALS_INVALID, which says whether the key was revoked
 */
export async function keepGivenKey(server: string, secret: string, env: NodeJS.ProcessEnv): Promise<string> {
  try {
    return keepKey(server, secret, env);
  } catch (error) {
    if (!isKeysError(error)) throw error;
    const { endKey } = await import('../../consent/cli/oauth.ts');
    const outcome = await endKey({ server, secret, endsCreated: true }).then(
      () => 'The new key was revoked again.',
      () => `The new key, ${shownAs(secret)}, is valid, but its secret is lost: delete it on the server.`,
    );
    throw new KeysError(error.code, `${error.message} ${outcome}`, { cause: error });
  }
}

/** A secret in the form of lists of keys. */
function shownAs(secret: string): string {
  const { publicId } = readSecret(secret)!;
  return prefixOf(publicId);
}
