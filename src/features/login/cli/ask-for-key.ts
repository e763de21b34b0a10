import { KeysError, readRetryAfter } from '../../../keys/basics/index.ts';
import {
  type Answer,
  descriptionIn,
  type GivenKey,
  givenIn,
  isNotOurs,
  MAX_PAUSE_MS,
  numberIn,
  OWN_CLIENT_ID,
  PassingError,
  postForm,
  refused as refusedKey,
  textIn,
  type Waiting,
} from '../../consent/cli/oauth.ts';
import { readUserCode } from '../../consent/codes.ts';
import { DEVICE_GRANT } from '../../consent/oauth/paths.ts';

export interface KeyWanted {
  /** Its address, in the form of `readServerUrl`. */
  server: string;
  /** See `parseScope`. */
  scope: string;
  /** The requested lifetime of the key, such as `30d`. */
  expiresIn: string | undefined;
}

/** The code and page that a person needs for approval. */
export interface ShownCode {
  userCode: string;
  /** The page on which they type it. */
  page: string;
}

/** Functions that the caller provides. */
export interface Asking extends Waiting {
  show: (code: ShownCode) => Promise<void>;
}

/** The longest lifetime of a code, whatever the server says, in seconds. */
const MAX_LIFETIME = 3600;
const AGAIN = 'Run the command again for a new code.';

/**
 * Requests a key from a server, shows a code, and waits until a person has decided (RFC 8628), or the code has expired.
 * A server that is busy or restarting is asked again.
 * @throws KeysError FORBIDDEN if they deny it or do not decide; SERVER_…; the refusal of the scope
 */
export async function askForKey(
  { server, scope, expiresIn }: KeyWanted,
  { show, note, wait, now }: Asking,
): Promise<GivenKey> {
  const wanted = { client_id: OWN_CLIENT_ID, scope, ...(expiresIn !== undefined && { key_expires_in: expiresIn }) };
  const device = await postForm(server, '/oauth/device_authorization', wanted);
  if ('error' in device) throw refused(server, device);
  const deviceCode = textIn(device, 'device_code', server);
  const userCode = readUserCode(textIn(device, 'user_code', server));
  if (userCode === undefined) throw isNotOurs(server);
  const endsAt = now() + Math.min(numberIn(device, 'expires_in') ?? MAX_LIFETIME, MAX_LIFETIME) * 1000;
  await show({ userCode, page: `${server}/device` });
  const form = { client_id: OWN_CLIENT_ID, grant_type: DEVICE_GRANT, device_code: deviceCode };
  let seconds = numberIn(device, 'interval') ?? 5;
  let isNoted = false;
  for (let pause = 0; ;) {
    await wait(Math.min(Math.max(seconds * 1000, pause), Math.max(endsAt - now(), 0)));
    const hasEnded = now() >= endsAt;
    try {
      const answer = await postForm(server, '/oauth/token', form);
      if (!('error' in answer)) return givenIn(answer, server);
      if (answer['error'] === 'slow_down') seconds += 5;
      else if (answer['error'] !== 'authorization_pending') throw refused(server, answer);
      if (hasEnded) throw refused(server, { error: 'expired_token' });
      pause = 0;
    } catch (error) {
      if (!(error instanceof PassingError)) throw error;
      const { code, message, retryAfter } = error;
      if (hasEnded)
        throw new KeysError(code, `${message} The code has expired in the meantime. ${AGAIN}`, { cause: error });
      if (!isNoted) await note(`${message} Trying again until the code expires.`);
      isNoted = true;
      pause = Math.min(readRetryAfter(retryAfter, now()) ?? 0, MAX_PAUSE_MS);
    }
  }
}

function refused(server: string, answer: Answer): KeysError {
  const { error } = answer;
  if (error === 'access_denied')
    return new KeysError(
      'FORBIDDEN',
      'The request was denied, or the person who approved it is no longer allowed to grant that.',
    );
  if (error === 'expired_token') return new KeysError('FORBIDDEN', `No one approved the request in time. ${AGAIN}`);
  if (error === 'unauthorized_client') return new KeysError('CONSENT_OFF', descriptionIn(answer));
  return refusedKey(server, answer);
}
