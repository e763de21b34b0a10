import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Context } from 'hono';
import type { SeenOrigin } from '../http/index.ts';
import type { FormOutcome } from '../keys/repository/index.ts';
import type { Sessions } from '../keys/authentication/index.ts';
import { OperationFailed } from './operations.ts';
import { formTokenIn, giveFormToken, KEY_FIELD, sessionTokenIn, takeFormToken } from './session-auth.ts';

const FIELD = 'once';
/** The address of an answer that is shown again. Whatever else a query has is not decoded for that. */
const ANSWER = /\?answer=([\w-]{43})$/;
const TOKEN = /^[\w-]{43}$/;
const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** How often it is asked whether another process has done what the same form asked it for. */
const POLL_MS = 50;
const LONGEST_POLL_MS = 1000;
const LONGEST_MS = 30_000;
/** How many requests of a session wait at a time, in each process. */
const MAX_WAITING = 5;
const waiting = new Map<string, number>();

/** Nobody is signed in any more by the session that a form was sent with. */
export class SessionEnded extends Error {}

/** Makes a form one that is done once, however often it is sent: its token is not to be guessed. */
export function OnceOnly() {
  return <input type="hidden" name={FIELD} value={randomBytes(32).toString('base64url')} />;
}

/** A page that is shown after a form was sent, to the session that sent it, for some minutes. */
export interface OutcomePage {
  readonly title: string;
  readonly html: string;
  /** Whether a secret stands there: it is gone once somebody leaves the page. */
  readonly isSecret: boolean;
  /** What is opened next, under `/console/`. */
  readonly next: string;
}

/** The answer of a form that was not done, such as the form again, with what is wrong. */
interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly html: string;
}

/** What forms are looked up with. */
interface Sender {
  readonly c: Context;
  readonly sessions: Sessions;
  readonly seen: SeenOrigin;
}

/**
 * A form that a session has sent. What it led to is kept with the session, for all processes that share its store: who
 * sends it again, or twice at once, is led there, too. A page with a secret is sealed with what the browser alone has,
 * the tokens of the session and of the form, so that the store never has that secret.
 */
export class SentForm {
  /** Identifies it in addresses, where its token never is. */
  readonly id: string;
  readonly #sender: Sender;
  readonly #session: string;
  readonly #token: string;

  private constructor(sender: Sender, session: string, token: string) {
    this.id = idOf(token);
    this.#sender = sender;
    this.#session = session;
    this.#token = token;
  }

  /** The form with these fields; undefined if it may be done more than once, or nobody has signed in. */
  static in(fields: URLSearchParams, sender: Sender): SentForm | undefined {
    const session = sessionTokenIn(sender.c, sender.seen);
    if (session === undefined || !TOKEN.test(fields.get(FIELD) ?? '')) return undefined;
    // A browser may show a form again that it has sent: filled in otherwise, it is another one, but for a key.
    const filledIn = Array.from(fields).filter(([name]) => name !== KEY_FIELD);
    return new SentForm(sender, session, hash('sha256', JSON.stringify(filledIn), 'base64url'));
  }

  /** The form that led to an address of this browser's session; undefined if another one did, or too long ago. */
  static behind(id: string, sender: Sender): SentForm | undefined {
    const [session, token] = [sessionTokenIn(sender.c, sender.seen), formTokenIn(sender.c, id, sender.seen) ?? ''];
    return session !== undefined && TOKEN.test(token) && idOf(token) === id
      ? new SentForm(sender, session, token)
      : undefined;
  }

  /** Whether a form led to a secret that was shown to this browser's session not long ago. */
  static async wasSeen(id: string, { c, sessions, seen }: Sender): Promise<boolean> {
    const token = sessionTokenIn(c, seen);
    const session = token === undefined ? undefined : await sessions.look(token);
    return session?.outcomes.some(({ form, isSeen }) => form === id && isSeen) ?? false;
  }

  /**
   * Takes back the secrets of pages that somebody has seen and left.
   * @param staying the id of a form whose page is opened now
   */
  static async leave({ c, sessions, seen }: Sender, staying?: string): Promise<void> {
    const token = sessionTokenIn(c, seen);
    const isLeft = ({ form, isSeen, sealed }: FormOutcome) => form !== staying && isSeen && sealed !== null;
    const session = token === undefined ? undefined : await sessions.look(token);
    const left = session?.outcomes.filter(isLeft) ?? [];
    if (left.length === 0) return;
    await sessions.changeOutcomes(token!, (outcomes) =>
      outcomes.map((one) => (isLeft(one) ? { ...one, sealed: null } : one)),
    );
    for (const { form } of left) takeFormToken(c, form, seen);
  }

  /**
   * Keeps the answer of a form that was not done, and sends the browser to where it is shown: browsers do not show the
   * answer to a POST again by themselves. What cannot be kept, or is too long for that, is answered at once.
   * @param answer a page without a secret
   */
  static async keepAnswer(answer: Response, sender: Sender): Promise<Response> {
    const { c, sessions, seen } = sender;
    const session = sessionTokenIn(c, seen);
    if (session === undefined) return answer;
    // Each has an address of its own, so that the same form with the same problems may be sent again.
    const token = randomBytes(32).toString('base64url');
    const sent = new SentForm(sender, session, token);
    const { 'set-cookie': _, ...headers } = Object.fromEntries(answer.headers);
    const kept: Answer = { status: answer.status, headers, html: await answer.clone().text() };
    const outcome = { form: sent.id, location: null, sealed: sent.#seal(JSON.stringify(kept)), isSeen: false };
    try {
      await sessions.changeOutcomes(session, (others, at) => [...others, { ...outcome, at, isAnswer: true }]);
      if ((await sent.#outcome()) === undefined) return answer;
    } catch {
      return answer;
    }
    return c.body(null, 303, { Location: `?answer=${token}`, 'Cache-Control': 'no-store' });
  }

  /** The answer that the address of a request names; undefined if there is none, or no more. */
  static async answerAt(sender: Sender): Promise<Response | undefined> {
    const { c, seen } = sender;
    const [session, token] = [sessionTokenIn(c, seen), ANSWER.exec(c.req.url)?.[1]];
    if (c.req.method === 'POST' || session === undefined || token === undefined) return undefined;
    const sent = new SentForm(sender, session, token);
    const outcome = await sent.#outcome();
    const text = outcome?.isAnswer ? sent.#unseal(outcome.sealed!) : undefined;
    if (text === undefined) return undefined;
    const { status, headers, html } = JSON.parse(text) as Answer;
    return c.body(html, status as 200, headers);
  }

  /**
   * Where it led, if it was sent before: waits until that is known.
   * @throws OperationFailed if that takes too long, or was never finished
   */
  async before(): Promise<string | undefined> {
    const outcome = (await this.#outcome()) && (await this.#finished());
    if (outcome === undefined) return undefined;
    if (outcome.sealed !== null) giveFormToken(this.#sender.c, this.id, this.#token, this.#sender.seen);
    return outcome.location ?? undefined;
  }

  /** Waits until it is done, or was given up. */
  async #finished(): Promise<FormOutcome | undefined> {
    const others = waiting.get(this.#session) ?? 0;
    if (others >= MAX_WAITING) throw failed('RATE_LIMITED', 429, 'This form is still being processed. Wait a moment.');
    waiting.set(this.#session, others + 1);
    try {
      const began = performance.now();
      for (let pauseMs = POLL_MS; performance.now() - began < LONGEST_MS; pauseMs *= 2) {
        const outcome = await this.#outcome();
        if (!outcome || outcome.location !== null) return outcome;
        await pause(Math.min(pauseMs, LONGEST_POLL_MS));
      }
    } finally {
      const left = waiting.get(this.#session)! - 1;
      if (left > 0) waiting.set(this.#session, left);
      else waiting.delete(this.#session);
    }
    const message =
      'You have sent this form before, and its outcome is not known. Check whether it was done. Nobody has ' +
      'seen the secret of a key that it created or rotated: rotate that key, or delete it.';
    throw failed('CONFLICT', 409, message);
  }

  /**
   * Does what it asks for, unless it was sent before. An answer that leads nowhere changes nothing.
   * @throws SessionEnded
   */
  async once(work: () => Promise<Response>): Promise<Response | { readonly location: string }> {
    for (;;) {
      const location = await this.before();
      if (location !== undefined) return { location };
      if (await this.#claim()) break;
    }
    let isDone = false;
    try {
      const response = await work();
      const location = response.status === 303 ? response.headers.get('location') : null;
      isDone = location !== null;
      // It is done: that the store does not take where it led is no reason to say otherwise.
      if (location !== null) await this.#change((outcome) => ({ ...outcome, location })).catch(() => {});
      return response;
    } finally {
      if (!isDone) await this.#change(() => undefined).catch(() => {});
    }
  }

  /**
   * Keeps a page that it leads to, for its browser alone.
   * @param location its address
   * @throws KeysError STORE_…
   */
  async keep(page: OutcomePage, location: string): Promise<void> {
    const { c, seen } = this.#sender;
    const sealed = this.#seal(JSON.stringify(page));
    if (!(await this.#change((outcome) => ({ ...outcome, sealed, location }))))
      throw new Error('The session has ended.');
    giveFormToken(c, this.id, this.#token, seen);
  }

  /** The page that it led to; undefined if that is not shown any more. One with a secret is seen from now on. */
  async open(): Promise<OutcomePage | undefined> {
    const outcome = await this.#outcome();
    const text = outcome?.sealed ? this.#unseal(outcome.sealed) : undefined;
    if (text === undefined) return undefined;
    const page = JSON.parse(text) as OutcomePage;
    if (page.isSecret && !outcome!.isSeen) await this.#change((one) => ({ ...one, isSeen: true }));
    return page;
  }

  /** Lets its page be shown no more. */
  async close(): Promise<void> {
    await this.#change((outcome) => ({ ...outcome, sealed: null }));
    takeFormToken(this.#sender.c, this.id, this.#sender.seen);
  }

  async #outcome(): Promise<FormOutcome | undefined> {
    const session = await this.#sender.sessions.look(this.#session);
    return session?.outcomes.find(({ form }) => form === this.id);
  }

  /** @returns whether it is to be done now: nobody else does it @throws SessionEnded */
  async #claim(): Promise<boolean> {
    const claimed = { form: this.id, location: null, sealed: null, isSeen: false };
    const before = await this.#sender.sessions.changeOutcomes(this.#session, (outcomes, now) =>
      outcomes.some(({ form }) => form === this.id) ? undefined : [...outcomes, { ...claimed, at: now }],
    );
    if (before === undefined) throw new SessionEnded();
    return !before.some(({ form }) => form === this.id);
  }

  /** @param change returns undefined to forget it @returns whether it was there */
  async #change(change: (outcome: FormOutcome) => FormOutcome | undefined): Promise<boolean> {
    const before = await this.#sender.sessions.changeOutcomes(this.#session, (outcomes) =>
      outcomes.flatMap((one) => (one.form === this.id ? (change(one) ?? []) : one)),
    );
    return before?.some(({ form }) => form === this.id) ?? false;
  }

  /** Neither token is in the store, and nobody has the one of the form who has that of the session alone. */
  get #cipherKey(): Uint8Array {
    return new Uint8Array(hkdfSync('sha256', this.#session, this.#token, 'svc-api: the page after a form', 32));
  }

  #seal(text: string): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, this.#cipherKey, iv);
    const sealed = Buffer.concat([cipher.update(gzipSync(text)), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  /** Undefined for what was sealed otherwise, or changed since. */
  #unseal(text: string): string | undefined {
    const sealed = Buffer.from(text, 'base64url');
    const decipher = createDecipheriv(CIPHER, this.#cipherKey, sealed.subarray(0, IV_BYTES));
    decipher.setAuthTag(sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    try {
      const opened = [decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES)), decipher.final()];
      return gunzipSync(Buffer.concat(opened)).toString();
    } catch {
      return undefined;
    }
  }
}

function failed(code: string, status: number, message: string): OperationFailed {
  return new OperationFailed([{ message, extensions: { code } }], status);
}

function idOf(token: string): string {
  return hash('sha256', `form:${token}`, 'base64url').slice(0, 22);
}
