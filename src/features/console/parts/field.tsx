import type { JSX } from 'hono/jsx';
import { formatTime, readDay, readDuration } from '../../../keys/basics/index.ts';
import { KEY_FIELD } from '../session-auth.ts';

/** A field with its label, help and problem. @param hasLines true for several lines @param choices all values beside none */
export function TextField({
  name,
  label,
  help,
  problem,
  hasLines,
  choices,
  ...attributes
}: {
  name: string;
  label: string;
  help?: string;
  problem?: string | undefined;
  hasLines?: boolean | undefined;
  choices?: readonly (readonly [value: string, text: string])[] | undefined;
} & JSX.IntrinsicElements['input']) {
  const described = [problem !== undefined && `${name}-problem`, help !== undefined && `${name}-help`].filter(Boolean);
  const common = {
    id: name,
    name,
    // No field asks for personal data that a browser could fill in.
    autocomplete: 'off',
    'aria-describedby': described.length > 0 ? described.join(' ') : undefined,
    'aria-invalid': problem === undefined ? undefined : ('true' as const),
  };
  return (
    <div class="field">
      <label for={name}>{label}</label>
      {choices ? (
        <select {...common}>
          <option value="">none</option>
          {choices.map(([value, text]) => (
            <option value={value} selected={attributes.value === value}>
              {text}
            </option>
          ))}
        </select>
      ) : hasLines ? (
        <textarea {...common} rows={4}>
          {attributes.value}
        </textarea>
      ) : (
        <input {...common} {...attributes} />
      )}
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

/** Values that a form sends along; a list for several of a name. */
export function HiddenFields({ values }: { values: Readonly<Record<string, string | readonly string[]>> }) {
  return (
    <>
      {Object.entries(values).flatMap(([name, value]) =>
        [value].flat().map((one) => <input type="hidden" name={name} value={one} />),
      )}
    </>
  );
}

/** A text field of a form of filters. @param isWide takes the room that others leave */
export function FilterField({
  label,
  isWide = false,
  ...attributes
}: { label: string; isWide?: boolean } & JSX.IntrinsicElements['input']) {
  return (
    <label class={isWide ? 'wide' : undefined}>
      <span>{label}</span>
      <input {...attributes} />
    </label>
  );
}

/** A choice in a form of filters. @param none the text for no choice; undefined if there must be one */
export function FilterChoice({
  name,
  label,
  none,
  chosen,
  options,
}: {
  name: string;
  label: string;
  none?: string;
  chosen: string;
  options: readonly (readonly [value: string, text: string])[];
}) {
  return (
    <label>
      <span>{label}</span>
      <select name={name} id={name}>
        {none !== undefined && <option value="">{none}</option>}
        {options.map(([value, text]) => (
          <option value={value} selected={chosen === value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/**
 * Asks for the key of the session again in a form that creates a secret, if it was last entered over 5 minutes ago.
 * People without a key sign in again instead.
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
        You signed in over 5 minutes ago. To protect new secrets, <a href={signInAgain}>sign in again</a> before you
        fill this in.
      </p>
    );
  return (
    <TextField
      name={KEY_FIELD}
      type="password"
      label="Your API key"
      help="Enter it again: you last did so over 5 minutes ago. This protects new secrets if someone else gets hold of this browser."
      problem={problem}
      autocomplete="current-password"
      spellcheck={false}
      required
    />
  );
}

/** The expiry of a key, as chosen in a form. */
export interface ExpiryChoice {
  /** A duration such as `30d`, `date`, `latest`, or a choice of the page's own. */
  readonly expiry: string;
  /** The last day, for the choice of one. */
  readonly date: string;
}

/** Bounds of an expiry in milliseconds since 1970; `end` is null for no latest time. */
export interface ExpiryBounds {
  readonly now: number;
  readonly end: number | null;
  /** The latest time is the expiry of the person's own key, and not set by the policy. */
  readonly isOwnEnd: boolean;
  /** The key must have an expiry. */
  readonly required: boolean;
}

const DURATIONS = { '1d': '1 day', '7d': '7 days', '30d': '30 days', '90d': '90 days' };
const DAY_MS = 86_400_000;

/** The default expiry: 30 days, or the latest allowed one if that is earlier. */
export function defaultExpiry(bounds: ExpiryBounds): ExpiryChoice {
  return { expiry: isWithin('30d', bounds) ? '30d' : 'latest', date: '' };
}

/**
 * Lets a person choose when a key expires, within their own expiry and the policy.
 * @param first a choice of the page's own, before the others: its value, and its text
 * @param mayNeverEnd offers no expiry, if their own key has none
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
  const longest = isOwnEnd ? 'When your own key expires' : 'As late as the policy allows';
  const last = end === null ? 'No expiry' : `${longest}, ${shortTime(end)}`;
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
          The policy of this service requires an expiry{end === null ? '.' : `, ${shortTime(end)} at the latest.`}
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
 * The chosen expiry in RFC 3339; empty for the default of GraphQL.
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
  if (expiry !== 'date') return { problem: 'Choose an expiry.' };
  const day = readDay(date);
  if (day === undefined) return { problem: 'Choose a date.' };
  const last = day + DAY_MS - 1000;
  // On the last day of their own key, it expires together with that.
  return { expiresAt: formatTime(end !== null && day < end ? Math.min(last, end) : last) };
}

export function isWithin(duration: string, { now, end }: Pick<ExpiryBounds, 'now' | 'end'>): boolean {
  return end === null || now + readDuration(duration)! <= end;
}

function dayOf(time: number): string {
  return formatTime(time).slice(0, 10);
}

/** A time in UTC, without seconds. */
export function shortTime(time: number): string {
  return formatTime(time)
    .replace('T', ' ')
    .replace(/:\d\d(\.\d+)?Z$/, ' UTC');
}
