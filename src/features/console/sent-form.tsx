import { hash, randomBytes } from 'node:crypto';
import type { Context } from 'hono';
import { OperationFailed } from './operations.ts';
import type { SentForms } from './recent-forms.ts';
import { KEY_FIELD, sessionTokenIn } from './session-auth.ts';
import type { SeenOrigin, Sessions } from '../sessions/index.ts';

const FIELD = 'once';
const TOKEN = /^[\w-]{43}$/;

/** The session that a form was sent with has ended. */
export class SessionEnded extends Error {}

/** Gives a form an unguessable token, so that it is done once however often it is sent. */
export function OnceOnly() {
  return <input type="hidden" name={FIELD} value={randomBytes(32).toString('base64url')} />;
}

/** The sender of a form, with the forms that were sent before. */
interface Sender {
  readonly c: Context;
  readonly sessions: Sessions;
  readonly forms: SentForms;
  readonly seen: SeenOrigin;
}

/** The answer to a form. */
export interface Answered {
  readonly response: Response;
  /** The form has changed something. */
  readonly isDone: boolean;
}

/**
 * A form of a session that is done once. If it is sent twice within a minute, it gets the same answer; later, it is
 * refused.
 */
export class SentForm {
  readonly #sender: Sender;
  readonly #session: string;
  readonly #id: string;

  private constructor(sender: Sender, session: string, fields: readonly [string, string][]) {
    this.#sender = sender;
    this.#session = session;
    this.#id = hash('sha256', JSON.stringify(['form', session, fields]), 'base64url');
  }

  /** The form with these fields; undefined if it can be done more than once, or has no session. */
  static in(fields: URLSearchParams, sender: Sender): SentForm | undefined {
    const session = sessionTokenIn(sender.c, sender.seen);
    if (session === undefined || !TOKEN.test(fields.get(FIELD) ?? '')) return undefined;
    // A form that is shown again and filled in differently is a new one, even if only the key was entered again.
    const filledIn = Array.from(fields).filter(([name]) => name !== KEY_FIELD);
    return new SentForm(sender, session, filledIn);
  }

  /**
   * Answers the form, or repeats the first answer.
   * @throws OperationFailed if the answer is no longer known
   */
  async once(work: () => Promise<Answered>): Promise<Response> {
    const { c, forms } = this.#sender;
    let own: Response | undefined;
    const answer = await forms.once(this.#id, async () => {
      const { response, isDone } = await work();
      own = response;
      // The browser already has its cookies, and another one must not get them.
      const { 'set-cookie': _, ...headers } = Object.fromEntries(response.headers);
      return { answer: { status: response.status, headers, text: await response.clone().text() }, isDone };
    });
    if (own) return own;
    if (!answer) throw sentBefore();
    return c.body(answer.text, answer.status as 200, answer.headers);
  }

  /**
   * Does the work, unless the form was already done elsewhere or the answer is forgotten.
   * @throws SessionEnded; OperationFailed if it was sent before; KeysError STORE_…
   */
  async take(work: () => Promise<Answered>): Promise<Answered> {
    const { sessions } = this.#sender;
    const isFirst = await sessions.takeForm(this.#session, this.#id);
    if (isFirst === undefined) throw new SessionEnded();
    if (!isFirst) throw sentBefore();
    let isDone = false;
    try {
      const answered = await work();
      ({ isDone } = answered);
      return answered;
    } finally {
      if (!isDone) await sessions.giveBackForm(this.#id).catch(() => {});
    }
  }
}

function sentBefore(): OperationFailed {
  const message =
    'You already sent this form, so nothing was done this time. Check whether the first one worked. A secret is shown ' +
    'only once: if you did not store it, rotate the key to get a new one.';
  return new OperationFailed([{ message, extensions: { code: 'CONFLICT' } }], 409);
}
