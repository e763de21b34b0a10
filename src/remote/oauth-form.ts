import { KeysError } from '../keys/errors.ts';
import { debugTimed } from '../keys/steps.ts';
import { printable } from '../keys/text.ts';
import { textOf } from './connection.ts';
import { incompatible } from './errors.ts';
import { unreachable } from './failures.ts';

const TIMEOUT_MS = 60_000;
const MAX_CHARACTERS = 64 * 1024;

/** What a server answers to applications, which may be anything. */
export type Answer = Readonly<Record<string, unknown>>;

/**
 * Sends a form as an application does, to that address alone.
 * @returns what a server of ours answers, also that something is wrong
 * @throws KeysError SERVER_UNREACHABLE, SERVER_INCOMPATIBLE
 */
export async function postForm(server: string, path: string, form: Record<string, string>): Promise<Answer> {
  let text: string;
  let isOk: boolean;
  try {
    const send = () =>
      fetch(server + path, {
        method: 'POST',
        body: new URLSearchParams(form),
        headers: { accept: 'application/json', 'user-agent': 'svc-api' },
        redirect: 'manual',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
    const response = await debugTimed('a server was asked', send, (answer) => ({
      server,
      path,
      status: answer?.status,
    }));
    text = await textOf(response, server, MAX_CHARACTERS);
    isOk = response.status === 200;
  } catch (error) {
    throw error instanceof KeysError ? error : unreachable(server, error, false);
  }
  try {
    const answer: unknown = JSON.parse(text);
    if (typeof answer === 'object' && answer !== null && (isOk || 'error' in answer)) return answer as Answer;
  } catch {
    // Not ours, as below.
  }
  throw isNotOurs(server);
}

/** What an error of such an answer says. */
export function descriptionIn({ error, error_description: description }: Answer): string {
  return printable(typeof description === 'string' ? description : String(error), 500);
}

/** The error for an answer that is one. */
export function failed(server: string, answer: Answer): KeysError {
  return new KeysError('SERVER_FAILED', `The server ${server} failed: ${descriptionIn(answer)}`);
}

/** The error for an answer that is not that of a server of ours. */
export function isNotOurs(server: string): KeysError {
  return incompatible(server, 'answered, but not as one of svc-api does that applications can ask for keys.');
}
