import { hash, randomBytes } from 'node:crypto';
import type { Context } from 'hono';
import type { SeenOrigin } from '../../http/index.ts';
import { OperationFailed } from './operations.ts';
import type { SentForms } from './recent-forms.ts';
import { KEY_FIELD, sessionTokenIn } from './session-auth.ts';
import type { Sessions } from '../sessions/index.ts';

const FIELD = 'once';
const TOKEN = /^[\w-]{43}$/;

/** The session that a form was sent with has ended. */
export class SessionEnded extends Error {}

/** Makes a form one that is done once, however often it is sent: its token is not to be guessed. */
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
  /** Whether the form has changed something. */
  readonly isDone: boolean;
}

/**
 * A form that a session has sent, and that is done once. Sent again within a minute, or twice at once, it gets the same
 * answer; later, it is refused.
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

  /** The form with these fields; undefined if it may be done more than once, or has no session. */
  static in(fields: URLSearchParams, sender: Sender): SentForm | undefined {
    const session = sessionTokenIn(sender.c, sender.seen);
    if (session === undefined || !TOKEN.test(fields.get(FIELD) ?? '')) return undefined;
    // A browser may show a form again that it has sent: filled in otherwise, it is another one, but for a key.
    const filledIn = Array.from(fields).filter(([name]) => name !== KEY_FIELD);
    return new SentForm(sender, session, filledIn);
  }

  /**
   * Answers it, or repeats the answer of the first time.
   * @throws OperationFailed if that is not known any more
   */
  async once(work: () => Promise<Answered>): Promise<Response> {
    const { c, forms } = this.#sender;
    let own: Response | undefined;
    const answer = await forms.once(this.#id, async () => {
      const { response, isDone } = await work();
      own = response;
      // The browser has them, or another one must not get them.
      const { 'set-cookie': _, ...headers } = Object.fromEntries(response.headers);
      return { answer: { status: response.status, headers, text: await response.clone().text() }, isDone };
    });
    if (own) return own;
    if (!answer) throw sentBefore();
    return c.body(answer.text, answer.status as 200, answer.headers);
  }

  /**
   * Does what it asks for, unless another process has done that, or this one has forgotten the answer.
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
    'You have sent this form before, so nothing was done now. Check whether it was done then. A secret is shown only ' +
    'once: if you did not store it, rotate the key to get a new one.';
  return new OperationFailed([{ message, extensions: { code: 'CONFLICT' } }], 409);
}
