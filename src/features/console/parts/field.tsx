import type { JSX } from 'hono/jsx';
import { formatTime, readDay, readDuration } from '../../../keys/basics/index.ts';
import { KEY_FIELD } from '../session-auth.ts';

/** A field of one line, with its label, what to write there, and what is wrong with what was written. */
export function TextField({
  name,
  label,
  help,
  problem,
  ...attributes
}: {
  name: string;
  label: string;
  help?: string;
  problem?: string | undefined;
} & JSX.IntrinsicElements['input']) {
  const described = [problem !== undefined && `${name}-problem`, help !== undefined && `${name}-help`].filter(Boolean);
  return (
    <div class="field">
      <label for={name}>{label}</label>
      <input
        id={name}
        name={name}
        // Nothing of this is about the person who fills it in.
        autocomplete="off"
        aria-describedby={described.length > 0 ? described.join(' ') : undefined}
        aria-invalid={problem === undefined ? undefined : 'true'}
        {...attributes}
      />
      {problem !== undefined && (
        <p id={`${name}-problem`} class="wrong">
          {problem}
        </p>
      )}
      {help !== undefined && (
        <p id={`${name}-help`} class="help">
          {help}
        </p>
      )}
    </div>
  );
}

/**
 * Where a form that makes a secret asks for the key of the session, if it was not entered in the last 5 minutes; who
 * has none, signs in again.
 */
export function KeyField({
  visit: { isFresh, signInAgain },
  problem,
}: {
  visit: { isFresh: boolean; signInAgain: string | undefined };
  problem: string | undefined;
}) {
  if (isFresh) return null;
  if (signInAgain !== undefined)
    return (
      <p class={problem === undefined ? 'help' : 'wrong'}>
        You signed in over 5 minutes ago: whoever has only this browser, or its cookies, gets no new secret.{' '}
        <a href={signInAgain}>Sign in again</a> before you fill this in.
      </p>
    );
  return (
    <TextField
      name={KEY_FIELD}
      type="password"
      label="Your API key"
      help="You entered it over 5 minutes ago: whoever has only this browser, or its cookies, gets no new secret."
      problem={problem}
      autocomplete="current-password"
      spellcheck={false}
      required
    />
  );
}

/** When a key is to end, as a form has it. */
export interface ExpiryChoice {
  /** A duration such as `30d`, `date`, `latest`, or a choice of the page's own. */
  readonly expiry: string;
  /** The last day, for the choice of one. */
  readonly date: string;
}

/** Between now and which time an end lies, in milliseconds since 1970; null for no latest one. */
export interface ExpiryBounds {
  readonly now: number;
  readonly end: number | null;
  /** Whether the latest one is the end of the key of whoever chooses, and not one by the policy. */
  readonly isOwnEnd: boolean;
  /** Whether there has to be an expiry. */
  readonly required: boolean;
}

const DURATIONS = { '1d': '1 day', '7d': '7 days', '30d': '30 days', '90d': '90 days' };
const DAY_MS = 86_400_000;

/** The end that is proposed: 30 days, or what there is up to the latest end. */
export function defaultExpiry(bounds: ExpiryBounds): ExpiryChoice {
  return { expiry: isWithin('30d', bounds) ? '30d' : 'latest', date: '' };
}

/**
 * Lets somebody choose when a key ends, at the latest with their own, and as the policy demands.
 * @param first a choice of the page's own, before the others: its value, and its text
 * @param mayNeverEnd whether it may be one that never ends, if their own never does
 */
export function ExpiryField({
  bounds,
  chosen,
  problem,
  first,
  mayNeverEnd = true,
}: {
  bounds: ExpiryBounds;
  chosen: ExpiryChoice;
  problem?: string | undefined;
  first?: readonly [value: string, text: string] | undefined;
  mayNeverEnd?: boolean;
}) {
  const { now, end, isOwnEnd, required } = bounds;
  const longest = isOwnEnd ? 'With your own key' : 'As late as the policy allows';
  const last = end === null ? 'No expiration' : `${longest}, ${shortTime(end)}`;
  const isDemanded = required && !isOwnEnd;
  const described = [problem !== undefined && 'expiry-problem', isDemanded && 'expiry-help'].filter(Boolean);
  const choices = [
    ...(first ? [first] : []),
    ...Object.entries(DURATIONS).filter(([duration]) => isWithin(duration, bounds)),
    ['date', 'Custom date'],
    ...(end === null && (required || !mayNeverEnd) ? [] : [['latest', last]]),
  ];
  return (
    <div class="field expiry">
      <label for="expiry">Expires</label>
      <select id="expiry" name="expiry" aria-describedby={described.length > 0 ? described.join(' ') : undefined}>
        {choices.map(([value, text]) => (
          <option value={value} selected={chosen.expiry === value}>
            {text}
          </option>
        ))}
      </select>
      <input
        type="date"
        name="date"
        value={chosen.date}
        min={dayOf(now)}
        max={end === null ? undefined : dayOf(end)}
        aria-label="Last day, in UTC"
      />
      {problem !== undefined && (
        <p id="expiry-problem" class="wrong">
          {problem}
        </p>
      )}
      {isDemanded && (
        <p id="expiry-help" class="help">
          The policy of this service requires an expiration{end === null ? '.' : `, ${shortTime(end)} at the latest.`}
        </p>
      )}
    </div>
  );
}

export function expiryChoiceIn(
  form: { get(name: string): string | null | undefined },
  bounds: ExpiryBounds,
): ExpiryChoice {
  return { expiry: form.get('expiry') ?? defaultExpiry(bounds).expiry, date: form.get('date')?.trim() ?? '' };
}

/**
 * The end that was chosen, in RFC 3339; without one, whatever GraphQL does by default.
 * @param first the choice of the page's own, which is that default
 */
export function expiresAtOf(
  { expiry, date }: ExpiryChoice,
  { now, end }: ExpiryBounds,
  first?: string,
): { expiresAt?: string } | { problem: string } {
  if (Object.hasOwn(DURATIONS, expiry)) return { expiresAt: formatTime(now + readDuration(expiry)!) };
  if (expiry === 'latest') return end === null ? {} : { expiresAt: formatTime(end) };
  if (expiry === first) return {};
  if (expiry !== 'date') return { problem: 'Choose an expiration.' };
  const day = readDay(date);
  if (day === undefined) return { problem: 'Choose a date.' };
  const last = day + DAY_MS - 1000;
  // On the day on which the own key ends, it ends with that.
  return { expiresAt: formatTime(end !== null && day < end ? Math.min(last, end) : last) };
}

export function isWithin(duration: string, { now, end }: Pick<ExpiryBounds, 'now' | 'end'>): boolean {
  return end === null || now + readDuration(duration)! <= end;
}

function dayOf(time: number): string {
  return formatTime(time).slice(0, 10);
}

/** A time to the minute, in UTC. */
export function shortTime(time: number): string {
  return formatTime(time)
    .replace('T', ' ')
    .replace(/:\d\d(\.\d+)?Z$/, ' UTC');
}
