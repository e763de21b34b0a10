import { KeysError } from '../keys/errors.ts';
import { readUserCode } from '../keys/requests/codes.ts';
import { OWN_CLIENT } from '../keys/requests/clients.ts';
import { readSecret } from '../keys/secret/secret.ts';
import { type Answer, descriptionIn, failed, isNotOurs, postForm } from './oauth-form.ts';

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

/** What to ask a server for. */
export interface KeyWanted {
  /** Its address, in the form of `readServerUrl`. */
  server: string;
  /** See `parseScope`. */
  scope: string;
  /** After which time the key is to end, such as `30d`. */
  expiresIn: string | undefined;
}

/** What a person needs to agree. */
export interface ShownCode {
  userCode: string;
  /** The page on which they type it. */
  page: string;
}

/** What is needed from outside. */
export interface Asking {
  show: (code: ShownCode) => Promise<void>;
  wait: (milliseconds: number) => Promise<unknown>;
}

/** A key that a server has given. */
export interface GivenKey {
  secret: string;
  scope: string;
  /** How long it lasts, in seconds; null without an end. */
  expiresIn: number | null;
}

/**
 * Asks a server for a key, shows a code, and waits until a person has decided (RFC 8628).
 * @throws KeysError FORBIDDEN if they refuse or do not decide; SERVER_…; what the scope is refused with
 */
export async function askForKey({ server, scope, expiresIn }: KeyWanted, { show, wait }: Asking): Promise<GivenKey> {
  const wanted = { client_id: OWN_CLIENT.id, scope, ...(expiresIn !== undefined && { key_expires_in: expiresIn }) };
  const device = await postForm(server, '/oauth/device_authorization', wanted);
  if ('error' in device) throw refused(server, device);
  const deviceCode = textIn(device, 'device_code', server);
  const userCode = readUserCode(textIn(device, 'user_code', server));
  if (userCode === undefined) throw isNotOurs(server);
  await show({ userCode, page: `${server}/device` });
  let seconds = numberIn(device, 'interval') ?? 5;
  for (;;) {
    await wait(seconds * 1000);
    const form = { client_id: OWN_CLIENT.id, grant_type: DEVICE_GRANT, device_code: deviceCode };
    const answer = await postForm(server, '/oauth/token', form);
    if (!('error' in answer)) return givenIn(answer, server);
    if (answer['error'] === 'slow_down') seconds += 5;
    else if (answer['error'] !== 'authorization_pending') throw refused(server, answer);
  }
}

function givenIn(answer: Answer, server: string): GivenKey {
  const secret = textIn(answer, 'access_token', server);
  if (!readSecret(secret)) throw isNotOurs(server);
  return { secret, scope: textIn(answer, 'scope', server), expiresIn: numberIn(answer, 'expires_in') ?? null };
}

/** Why there is no key, by what the server answers. */
function refused(server: string, answer: Answer): KeysError {
  const { error } = answer;
  if (error === 'access_denied')
    return new KeysError('FORBIDDEN', 'The request was refused, or whoever agreed to it may not grant that any more.');
  if (error === 'expired_token')
    return new KeysError('FORBIDDEN', 'Nobody has agreed in time. Run the command again for a new code.');
  if (error === 'invalid_scope' || error === 'invalid_request')
    return new KeysError('INPUT_INVALID', descriptionIn(answer));
  if (error === 'unauthorized_client') throw new KeysError('CONSENT_OFF', descriptionIn(answer));
  return failed(server, answer);
}

/** A text without what a terminal would obey. @throws KeysError SERVER_INCOMPATIBLE */
function textIn(answer: Answer, field: string, server: string): string {
  const value = answer[field];
  if (typeof value === 'string' && /^[\x20-\x7e]+$/.test(value)) return value;
  throw isNotOurs(server);
}

function numberIn(answer: Answer, field: string): number | undefined {
  const value = answer[field];
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : undefined;
}
