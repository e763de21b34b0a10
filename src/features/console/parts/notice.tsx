import type { Child } from 'hono/jsx';
import { relativeTime } from '../../../keys/basics/index.ts';
import type { Person } from '../../../keys/key/index.ts';

/** What went wrong, read out at once. */
export function Problem({ children }: { children?: Child }) {
  return (
    <div class="notice problem" role="alert">
      {children}
    </div>
  );
}

/** What a page says first that is no answer, by its status. */
export function titleOf(status: number): string {
  if (status === 404) return 'Not found';
  if (status === 429) return 'Too many requests';
  if (status >= 500) return 'Something went wrong';
  return status === 403 || status === 405 ? 'Not allowed' : 'That did not work';
}

/** How many fields of a form are to be fixed, with the way to each. */
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

/** What to know before doing something. */
export function Warning({ children }: { children?: Child }) {
  return <div class="notice warning">{children}</div>;
}

/** What stands where there is nothing yet: why, and what to do. */
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

/** Something that is known, in a list of such. */
export function Fact({ name, children }: { name: string; children?: Child }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

/** A link that looks like a button. */
export function LinkButton({ to, children }: { to: string; children?: Child }) {
  return (
    <a class="button" href={to}>
      {children}
    </a>
  );
}

/** The way back, above the title of a page. */
export function BackLink({ to, children }: { to: string; children?: Child }) {
  return (
    <p class="back">
      <a href={to}>← {children}</a>
    </p>
  );
}

/** Why the service refuses something, to whoever has signed in: there, "this key" is the one that asks. */
export function inYourWords(reason: string): string {
  return reason.replaceAll(/\b([Tt])his key\b/g, (_, first: string) => `${first === 'T' ? 'Y' : 'y'}our key`);
}

/** A secret, on the only page that ever shows it, with a button that copies it. @param of whose it is */
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

/** Whether a key is accepted, see `ApiKeyStatus`. */
export type KeyStatus = 'ACTIVE' | 'DISABLED' | 'EXPIRED';

const WORDS = { ACTIVE: 'active', DISABLED: 'disabled', EXPIRED: 'expired' } as const;

/** The status of a key: a word, and a colour beside it. */
export function Status({ is }: { is: KeyStatus }) {
  return <span class={`status ${WORDS[is]}`}>{WORDS[is]}</span>;
}

/** Somebody who signs in without a key of their own: see `ApiKeyPerson`. */
export type ShownPerson = Pick<Person, 'issuer' | 'name'>;

/** Whose key without a secret it is. */
export function PersonNote({ of: { issuer, name } }: { of: ShownPerson }) {
  return (
    <span class="faint" title={issuer}>
      person: {name}
    </span>
  );
}

const MINUTE_MS = 60_000;

/** A time as people say it, and exactly where the pointer rests on it. */
export function Time({ at, now }: { at: string | null; now: number }) {
  if (at === null) return <span class="faint">never</span>;
  const distance = Date.parse(at) - now;
  // A column would have "75 seconds ago" under "2 minutes ago" otherwise.
  const rounded = Math.abs(distance) < MINUTE_MS ? distance : Math.round(distance / MINUTE_MS) * MINUTE_MS;
  return (
    <time datetime={at} title={exactTime(at)}>
      {relativeTime(now + rounded, now)}
    </time>
  );
}

/** When something was used last, in a sentence. @param words what stands before the time */
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

/** `1,200`. */
export function formatNumber(count: number): string {
  return count.toLocaleString('en');
}

/** `1,200`, or `1,000+` where that is as far as it was counted. */
export function formatTotal({ total, hasMore }: { total: number; hasMore: boolean }): string {
  return `${formatNumber(total)}${hasMore ? '+' : ''}`;
}

/** `1 use`, `1,200 uses`. @param several for what gets no `s` */
export function formatCount(count: number, what: string, several = `${what}s`): string {
  return `${formatNumber(count)} ${count === 1 ? what : several}`;
}

/** A key by its name, with the way to its page where its id is known; only that it is one, where it may not be read. */
export function KeyLink({ root, id, name }: { root: string; id: string | null; name: string | null }) {
  if (name === null) return <>another key</>;
  return id === null ? <>{name}</> : <a href={`${root}keys/${id}`}>{name}</a>;
}
