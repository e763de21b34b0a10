import { KeysError } from '../keys/errors.ts';
import { OWN_CLIENT } from '../keys/requests/clients.ts';
import { descriptionIn, failed, isNotOurs, postForm } from './oauth-form.ts';

/** A key that is to be ended. */
export interface KeyToEnd {
  /** The server's address, in the form of `readServerUrl`. */
  server: string;
  secret: string;
  /** Whether it is ended also if it has created others, which end with it. */
  endsCreated: boolean;
}

/**
 * Ends a key that a server has given to this program (RFC 7009). One that is not valid any more counts as ended.
 * @returns undefined, or why a key is spared that has created others
 * @throws KeysError FORBIDDEN for a key that this program was not given; SERVER_…
 */
export async function endKey({ server, secret, endsCreated }: KeyToEnd): Promise<string | undefined> {
  const form = { client_id: OWN_CLIENT.id, token: secret, ...(!endsCreated && { created_keys: 'refuse' }) };
  const answer = await postForm(server, '/oauth/revoke', form);
  const { error } = answer;
  // Whatever else answers must not look as if the key were ended.
  if (error === undefined && Object.keys(answer).length > 0) throw isNotOurs(server);
  if (error === undefined) return undefined;
  if (error === 'has_created_keys') return descriptionIn(answer);
  if (error === 'unsupported_token_type' || error === 'invalid_grant')
    throw new KeysError('FORBIDDEN', `The server ${server} does not end this key: ${descriptionIn(answer)}`);
  throw failed(server, answer);
}
