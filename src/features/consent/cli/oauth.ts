import { debugTimed, KeysError, printable } from '../../../keys/basics/index.ts';
import { readSecret } from '../../../keys/secret/index.ts';
import { incompatible, isUntrusted, textOf, unreachable } from '../../../remote/connection.ts';

/** The id of the program itself, as an application. */
export const OWN_CLIENT_ID = 'svc-api';

/** Functions that the caller provides. */
export interface Waiting {
  /** Prints why it is waiting. */
  note: (text: string) => Promise<void>;
  wait: (milliseconds: number) => Promise<unknown>;
  /** Milliseconds since 1970. */
  now: () => number;
}

export interface GivenKey {
  secret: string;
  scope: string;
  /** Its lifetime in seconds; null if it never expires. */
  expiresIn: number | null;
}

/** The longest pause before a server is asked again, in milliseconds. */
export const MAX_PAUSE_MS = 60_000;

/** The key in an answer. @throws KeysError SERVER_INCOMPATIBLE */
export function givenIn(answer: Answer, server: string): GivenKey {
  const secret = textIn(answer, 'access_token', server);
  if (!readSecret(secret)) throw isNotOurs(server);
  return { secret, scope: textIn(answer, 'scope', server), expiresIn: numberIn(answer, 'expires_in') ?? null };
}

/** The error for an answer that refuses a key. */
export function refused(server: string, answer: Answer): KeysError {
  const { error } = answer;
  if (error === 'invalid_scope' || error === 'invalid_request')
    return new KeysError('INPUT_INVALID', descriptionIn(answer));
  return failed(server, answer);
}

/** A text that is safe to print on a terminal. @throws KeysError SERVER_INCOMPATIBLE */
export function textIn(answer: Answer, field: string, server: string): string {
  const value = answer[field];
  if (typeof value === 'string' && /^[\x20-\x7e]+$/.test(value)) return value;
  throw isNotOurs(server);
}

/** A number that is not negative; undefined if the answer has none. */
export function numberIn(answer: Answer, field: string): number | undefined {
  const value = answer[field];
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : undefined;
}

/** A key to revoke. */
export interface KeyToEnd {
  /** The server's address, in the form of `readServerUrl`. */
  server: string;
  secret: string;
  /** True to revoke it even if it has child keys, which are revoked with it. */
  endsCreated: boolean;
}

/**
 * Revokes a key that a server issued to this program (RFC 7009). An invalid one counts as revoked.
 * @returns undefined, or why a key with child keys was spared
 * @throws KeysError FORBIDDEN for a key that was not issued to this program; SERVER_…
 */
export async function endKey({ server, secret, endsCreated }: KeyToEnd): Promise<string | undefined> {
  const form = { client_id: OWN_CLIENT_ID, token: secret, ...(!endsCreated && { created_keys: 'refuse' }) };
  const answer = await postForm(server, '/oauth/revoke', form);
  const { error } = answer;
  // An answer from any other program must not look as if the key were revoked.
  if (error === undefined && Object.keys(answer).length > 0) throw isNotOurs(server);
  if (error === undefined) return undefined;
  if (error === 'has_created_keys') return descriptionIn(answer);
  if (error === 'unsupported_token_type' || error === 'invalid_grant')
    throw new KeysError('FORBIDDEN', `The server ${server} does not end this key: ${descriptionIn(answer)}`);
  throw failed(server, answer);
}

const TIMEOUT_MS = 60_000;
const MAX_CHARACTERS = 64 * 1024;

/** A server's answer to an application, which may have any form. */
export type Answer = Readonly<Record<string, unknown>>;

/** Statuses of a busy server, or of a proxy in front of one that is down. */
const PASSING_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** A temporary failure. */
export class PassingError extends KeysError {
  /** The server's Retry-After header; empty if there is none. */
  readonly retryAfter: string;

  constructor({ code, message, cause }: KeysError, retryAfter: string | null = null) {
    super(code, message, { cause });
    this.retryAfter = retryAfter ?? '';
  }
}

/**
 * Sends a form like an application, to that address only.
 * @returns the answer of a server of ours, even if it is an error
 * @throws KeysError SERVER_UNREACHABLE, SERVER_INCOMPATIBLE
 */
export async function postForm(server: string, path: string, form: Record<string, string>): Promise<Answer> {
  let text: string;
  let response: Response;
  try {
    const send = () =>
      fetch(server + path, {
        method: 'POST',
        body: new URLSearchParams(form),
        headers: { accept: 'application/json', 'user-agent': 'svc-api' },
        redirect: 'manual',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
    response = await debugTimed('a server was asked', send, (answer) => ({
      server,
      path,
      status: answer?.status,
    }));
    text = await textOf(response, server, MAX_CHARACTERS);
  } catch (error) {
    if (error instanceof KeysError) throw error;
    throw isUntrusted(error) ? unreachable(server, error, false) : new PassingError(unreachable(server, error, false));
  }
  const { status, headers } = response;
  const answer = answerIn(text, status === 200);
  if (PASSING_STATUSES.has(status)) {
    const what = `The server ${server} does not answer at the moment (status ${status}).`;
    throw new PassingError(
      answer ? failed(server, answer) : new KeysError('SERVER_FAILED', what),
      headers.get('retry-after'),
    );
  }
  if (!answer) throw isNotOurs(server);
  return answer;
}

/** The answer in a text; undefined if it is not from a server of ours. */
function answerIn(text: string, isOk: boolean): Answer | undefined {
  try {
    const answer: unknown = JSON.parse(text);
    return typeof answer === 'object' && answer !== null && (isOk || 'error' in answer)
      ? (answer as Answer)
      : undefined;
  } catch {
    return undefined;
  }
}

/** The reason in an answer that is an error, safe to print. */
export function descriptionIn({ error, error_description: description }: Answer): string {
  return printable(typeof description === 'string' ? description : String(error), 500);
}

function failed(server: string, answer: Answer): KeysError {
  return new KeysError('SERVER_FAILED', `The server ${server} failed: ${descriptionIn(answer)}`);
}

/** The error for an answer of any other program. */
export function isNotOurs(server: string): KeysError {
  return incompatible(server, 'answered, but not as one of svc-api does that applications can ask for keys.');
}
