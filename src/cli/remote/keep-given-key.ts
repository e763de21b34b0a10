import { isKeysError, KeysError } from '../../keys/errors.ts';
import { prefixOf, readSecret } from '../../keys/secret/secret.ts';
import { keepKey } from './credentials.ts';

/**
 * Keeps a key that a server has just given. One that cannot be kept is ended there, as nobody has its secret.
 * @returns the path of its file
 * @throws KeysError CREDENTIALS_INVALID, with what became of the key
 */
export async function keepGivenKey(server: string, secret: string, env: NodeJS.ProcessEnv): Promise<string> {
  try {
    return keepKey(server, secret, env);
  } catch (error) {
    if (!isKeysError(error)) throw error;
    const { endKey } = await import('../../remote/oauth.ts');
    const outcome = await endKey({ server, secret, endsCreated: true }).then(
      () => 'The new key is ended again.',
      () => `The new key, ${shownAs(secret)}, is valid, and nobody has it: delete it on the server.`,
    );
    throw new KeysError(error.code, `${error.message} ${outcome}`, { cause: error });
  }
}

/** What lists of keys show of a secret. */
function shownAs(secret: string): string {
  const { publicId } = readSecret(secret)!;
  return prefixOf(publicId);
}
