import { formatTime, pastTimeRemedy, readPastTime } from '../../../keys/basics/index.ts';
import { DEFAULT_GRACE } from '../../../keys/key/index.ts';
import { TextField } from '../../parts/field.tsx';
import { Problem } from '../../parts/notice.tsx';
import { OnceOnly } from '../../sent-form.tsx';
import type { KeyVisit } from './with-key.tsx';

/** A form that starts a rotation, as it was sent. */
export interface GivenRotation {
  readonly grace: string;
  readonly activate: string;
  readonly disableCreated: boolean;
  readonly createdSince: string;
  /** The same as GraphQL takes it. */
  readonly input: object;
  /** What is wrong, by the names of fields. */
  readonly problems: ReadonlyMap<string, string>;
}

/** The form before it was sent. */
export const NOTHING_GIVEN: GivenRotation = {
  grace: DEFAULT_GRACE,
  activate: 'NOW',
  disableCreated: false,
  createdSince: '',
  input: {},
  problems: new Map(),
};

/** Reads the form. @param now milliseconds since 1970 */
export function readRotationForm(form: URLSearchParams, now: number): GivenRotation {
  const text = (name: string) => form.get(name)?.trim() ?? '';
  const grace = text('grace') || DEFAULT_GRACE;
  const activate = text('activate') === 'ON_FIRST_USE' ? 'ON_FIRST_USE' : 'NOW';
  const disableCreated = form.has('disableCreated');
  const createdSince = text('createdSince');
  const since = createdSince === '' ? undefined : readPastTime(createdSince, now);
  const problems = new Map<string, string>();
  if (createdSince !== '' && since === undefined)
    problems.set('createdSince', `This is not a time. ${pastTimeRemedy(createdSince)}`);
  const input = {
    grace,
    activate,
    disableCreated,
    ...(disableCreated && since !== undefined && { createdSince: formatTime(since) }),
  };
  return { grace, activate, disableCreated, createdSince, input, problems };
}

/** Starts a rotation. */
export function StartRotation({ here, given }: { here: KeyVisit; given: GivenRotation }) {
  const { base, rights } = here;
  return (
    <form method="post" action={`${base}/rotation`} class="sheet">
      <OnceOnly />
      <p>
        The key gets a new secret, which is shown once. What it is called, what it may do and what it was used for
        stays. The previous secret works until its grace period is over: put the new one in its place meanwhile.
      </p>
      {rights.isSelf && (
        <p>
          You have signed in with this key. Sign in with the new secret afterwards: the previous one only shows, and
          changes nothing.
        </p>
      )}
      {given.problems.size > 0 && <Problem>Some of this is not right: see below.</Problem>}
      <TextField
        name="grace"
        label="Grace period"
        value={given.grace}
        help="Such as 24h, 7d or 90m. 0s ends the previous secret at once: right after a leak."
        problem={given.problems.get('grace')}
      />
      <fieldset>
        <legend>It begins</legend>
        <Choice name="activate" value="NOW" chosen={given.activate} label="now" />
        <Choice
          name="activate"
          value="ON_FIRST_USE"
          chosen={given.activate}
          label="when the new secret is first used: if it gets lost on its way, nothing breaks"
        />
      </fieldset>
      <AfterLeak here={here} given={given} />
      <div class="actions">
        <button class="primary">Rotate</button>
        <a class="button" href={base}>
          Cancel
        </a>
      </div>
    </form>
  );
}

function Choice({ name, value, chosen, label }: { name: string; value: string; chosen: string; label: string }) {
  return (
    <label class="choice">
      <input type="radio" name={name} value={value} checked={value === chosen} /> <span>{label}</span>
    </label>
  );
}

function AfterLeak({ here: { shown, rights }, given }: { here: KeyVisit; given: GivenRotation }) {
  if (shown.descendants.count === 0) return null;
  const refused = rights.whyNot('ROTATE_AND_DISABLE_CREATED');
  if (refused !== undefined) return <p class="help">You cannot disable the keys that it has created: {refused}</p>;
  const created = shown.descendants.keys.filter(({ createdBy }) => createdBy === shown.id);
  return (
    <fieldset>
      <legend>After a leak</legend>
      <label class="choice">
        <input type="checkbox" name="disableCreated" checked={given.disableCreated} />
        <span>
          Disable the keys that it has created, too: they may be the thief's.
          {created.length > 0 && <span class="faint">{` ${created.map(({ name }) => name).join(', ')}`}</span>}
        </span>
      </label>
      <TextField
        name="createdSince"
        label="Only those created since"
        value={given.createdSince}
        help="A date, a date and time, or an age such as 24h. Empty for all of them."
        problem={given.problems.get('createdSince')}
      />
    </fieldset>
  );
}
