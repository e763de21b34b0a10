import type { Child, JSX } from 'hono/jsx';
import { relativeTime } from '../../../keys/basics/index.ts';
import type { Person } from '../../people/people.ts';

/** An error, announced by screen readers immediately. */
export function Problem({ children }: { children?: Child }) {
  return (
    <div class="notice problem" role="alert">
      {children}
    </div>
  );
}

/** The title of an error page, by status. */
export function titleOf(status: number): string {
  if (status === 404) return 'Not found';
  if (status === 429) return 'Too many requests';
  if (status >= 500) return 'Something went wrong';
  return status === 403 || status === 405 ? 'Not allowed' : 'That did not work';
}

/** Lists the fields to fix, with a link to each. */
export function FixFields({ fields }: { fields: readonly { readonly id: string; readonly label: string }[] }) {
  if (fields.length === 0) return null;
  return (
    <p>
      Fix {formatCount(fields.length, 'field')}:{' '}
      {fields.map(({ id, label }, index) => (
        <>
          {index > 0 && ', '}
          <a href={`#${id}`}>{label}</a>
        </>
      ))}
    </p>
  );
}

export function Done({ children }: { children?: Child }) {
  return (
    <div class="notice done" role="status">
      {children}
    </div>
  );
}

/** A warning before an action. */
export function Warning({ children }: { children?: Child }) {
  return <div class="notice warning">{children}</div>;
}

/** Shown in place of an empty list: the reason, and what to do. */
export function Empty({ title, children }: { title: string; children?: Child }) {
  return (
    <div class="empty">
      <p>
        <strong>{title}</strong>
      </p>
      {children}
    </div>
  );
}

/** An item in a list of facts. */
export function Fact({ name, children }: { name: string; children?: Child }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

/** A link that looks like a button. */
export function LinkButton({
  to,
  kind,
  children,
  ...attributes
}: { to: string; kind?: 'primary' | 'danger' | 'quiet'; children?: Child } & JSX.IntrinsicElements['a']) {
  return (
    <a class={kind ? `button ${kind}` : 'button'} href={to} {...attributes}>
      {children}
    </a>
  );
}

/** Message for people who can change nothing with the secret that they signed in with. */
export const PREVIOUS_SECRET =
  'You are signed in with the previous secret of your key, which can only read. Sign in with the new one.';

/** Rewrites a refusal for the signed-in person: "this key" becomes "your key". */
export function inYourWords(reason: string): string {
  return reason.replaceAll(/\b([Tt])his key\b/g, (_, first: string) => `${first === 'T' ? 'Y' : 'y'}our key`);
}

/** A secret with a copy button, on the only page that ever shows it. @param of name of its key */
export function Secret({ of, secret }: { of: string; secret: string }) {
  return (
    <div class="secret">
      <label for="secret">Secret of {of}</label>
      <input id="secret" readonly value={secret} autocomplete="off" spellcheck={false} />
      <button type="button" class="primary" data-copy="secret" hidden>
        Copy
      </button>
      <span role="status"></span>
    </div>
  );
}

/** The status of a key: see `ApiKeyStatus`. */
export type KeyStatus = 'ACTIVE' | 'DISABLED' | 'EXPIRED';

const WORDS = { ACTIVE: 'active', DISABLED: 'disabled', EXPIRED: 'expired' } as const;

/** The status of a key, as a word with a colour. */
export function Status({ is }: { is: KeyStatus }) {
  return <span class={`status ${WORDS[is]}`}>{WORDS[is]}</span>;
}

/** A person who signs in without a key: see `ApiKeyPerson`. */
export type ShownPerson = Pick<Person, 'issuer' | 'name'>;

/** Names the person that a key without a secret stands for. */
export function PersonNote({ of: { issuer, name } }: { of: ShownPerson }) {
  return (
    <span class="faint" title={issuer}>
      person: {name}
    </span>
  );
}

const MINUTE_MS = 60_000;

/** A relative time, with the exact time as a tooltip. */
export function Time({ at, now }: { at: string | null; now: number }) {
  if (at === null) return <span class="faint">never</span>;
  const distance = Date.parse(at) - now;
  // Round to minutes: a column would otherwise show "75 seconds ago" under "2 minutes ago".
  const rounded = Math.abs(distance) < MINUTE_MS ? distance : Math.round(distance / MINUTE_MS) * MINUTE_MS;
  return (
    <time datetime={at} title={exactTime(at)}>
      {relativeTime(now + rounded, now)}
    </time>
  );
}

/** The last use as part of a sentence. @param words put before the time */
export function LastUse({ at, now, words }: { at: string | null; now: number; words: 'used' | 'last used' }) {
  if (at === null) return <>never used</>;
  return (
    <>
      {words} <Time at={at} now={now} />
    </>
  );
}

/** `2030-01-31 12:00:00 UTC`. @param at a time in UTC, by RFC 3339 */
export function exactTime(at: string): string {
  return at.replace('T', ' ').replace(/(\.\d+)?Z$/, ' UTC');
}

/** `CONSENT_EXCHANGE` is "consent exchange". */
export function wordsOfCode(code: string): string {
  return code.toLowerCase().replaceAll('_', ' ');
}

/** `1,200`. */
export function formatNumber(count: number): string {
  return count.toLocaleString('en');
}

/** `1,200`, or `1,000+` if counting stopped there. */
export function formatTotal({ total, hasMore }: { total: number; hasMore: boolean }): string {
  return `${formatNumber(total)}${hasMore ? '+' : ''}`;
}

/** `1 use`, `1,200 uses`. @param several for irregular plurals */
export function formatCount(count: number, what: string, several = `${what}s`): string {
  return `${formatNumber(count)} ${count === 1 ? what : several}`;
}

/** Links to a key by name; without a link if its id is unknown, and "another key" if its name cannot be seen. */
export function KeyLink({ root, id, name }: { root: string; id: string | null; name: string | null }) {
  if (name === null) return <>another key</>;
  return id === null ? <>{name}</> : <a href={`${root}keys/${id}`}>{name}</a>;
}
