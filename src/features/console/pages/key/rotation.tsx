import { DEFAULT_GRACE } from '../../../../keys/key/index.ts';
import { formatTime, pastTimeRemedy, readPastTime } from '../../../../keys/basics/index.ts';
import { OperationFailed, orFailed } from '../../operations.ts';
import type { Pages } from '../../visit.tsx';
import { KeyField, TextField } from '../../parts/field.tsx';
import { Panel } from '../../parts/layout.tsx';
import { Done, FixFields, Problem, Secret, Time, Warning, LinkButton } from '../../parts/notice.tsx';
import { OnceOnly } from '../../sent-form.tsx';
import { KEY_FIELD } from '../../session-auth.ts';
import type { ShownRotation } from './shown-key.ts';
import { askChildren, type Children } from './tree.tsx';
import { type KeyVisit, withKey } from './with-key.tsx';

/** A form that starts a rotation, as it was sent. */
interface GivenRotation {
  readonly grace: string;
  readonly activate: string;
  readonly disableCreated: boolean;
  readonly createdSince: string;
  /** The form as GraphQL input. */
  readonly input: object;
  /** Problems by field name. */
  readonly problems: ReadonlyMap<string, string>;
}

/** Reads the form. @param now milliseconds since 1970 */
function readRotationForm(form: URLSearchParams, now: number): GivenRotation {
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

/** The form before it was sent. */
const NOTHING_GIVEN = readRotationForm(new URLSearchParams(), 0);

/** Labels of the fields. */
const LABELS: Readonly<Record<string, string>> = {
  grace: 'Grace period',
  createdSince: 'Only keys created since',
  [KEY_FIELD]: 'Your API key',
};

function StartRotation({ here, given, children }: { here: KeyVisit; given: GivenRotation; children: Children }) {
  const { base, rights } = here;
  return (
    <form method="post" action={`${base}/rotation`} class="sheet">
      <OnceOnly />
      <p>
        The key gets a new secret, which is shown once. Its name, permissions and usage stay the same. The previous
        secret works until its grace period ends.
      </p>
      {rights.isSelf && (
        <p>You are signed in with this key. Sign in with the new secret afterwards: the previous one can only read.</p>
      )}
      {given.problems.size > 0 && (
        <Problem>
          <FixFields fields={Array.from(given.problems.keys(), (id) => ({ id, label: LABELS[id] ?? id }))} />
        </Problem>
      )}
      <TextField
        name="grace"
        label="Grace period"
        value={given.grace}
        help="For example 24h or 7d. Use 0s after a leak: the previous secret then stops working immediately."
        problem={given.problems.get('grace')}
      />
      <fieldset>
        <legend>Grace period starts</legend>
        <Choice name="activate" value="NOW" chosen={given.activate} label="Now" />
        <Choice
          name="activate"
          value="ON_FIRST_USE"
          chosen={given.activate}
          label="On first use of the new secret (safe if it gets lost)"
        />
      </fieldset>
      <AfterLeak here={here} given={given} children={children} />
      <KeyField visit={here.visit} problem={given.problems.get(KEY_FIELD)} />
      <div class="actions">
        <button class="primary">Rotate</button>
        <LinkButton to={base}>Cancel</LinkButton>
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

function AfterLeak({
  here: { shown, rights },
  given,
  children: { keys, total },
}: {
  here: KeyVisit;
  given: GivenRotation;
  children: Children;
}) {
  if (shown.branch.count === 0) return null;
  const refused = rights.whyNot('ROTATE_AND_DISABLE_CREATED');
  if (refused !== undefined) return <p class="help">You cannot disable the keys that it created: {refused}</p>;
  return (
    <fieldset>
      <legend>After a leak</legend>
      <label class="choice">
        <input type="checkbox" name="disableCreated" checked={given.disableCreated} />
        <span>
          Also disable the keys that it created: an attacker may have made them.
          {keys.length > 0 && (
            <span class="faint">
              {` ${keys.map(({ name }) => name).join(', ')}`}
              {total > keys.length && ', …'}
            </span>
          )}
        </span>
      </label>
      <TextField
        name="createdSince"
        label="Only keys created since"
        value={given.createdSince}
        help="A date, a date and time, or an age such as 24h. Empty: all of them."
        problem={given.problems.get('createdSince')}
      />
    </fieldset>
  );
}

const ROTATE = `mutation Rotate($input: RotateApiKeyInput!) {
  rotateApiKey(input: $input) { key apiKey { rotation { previousPrefix previousEndsAt } } disabled { name } }
}`;

/** Steps of a rotation: the address, the GraphQL field, and the message shown afterwards. */
const STEPS = [
  ['activate', 'activateApiKeyRotation', 'activated'],
  ['finish', 'finishApiKeyRotation', 'finished'],
  ['roll-back', 'rollBackApiKeyRotation', 'rolled-back'],
] as const;

/** Adds the pages that rotate a key, step by step. */
export function addRotation(pages: Pages): void {
  pages.get('keys/:id/rotation', withKey(showRotation, 'UPDATE'));
  pages.post('keys/:id/rotation', withKey(rotate, 'UPDATE'));
  for (const [path, field, done] of STEPS)
    pages.post(
      `keys/:id/rotation/${path}`,
      withKey(async (here) => {
        const { visit, shown } = here;
        const query = `mutation Step($id: ID!) { ${field}(id: $id) { id } }`;
        const stepped = await orFailed(visit.ask(query, { id: shown.id }));
        if (stepped instanceof OperationFailed)
          return showRotation(here, NOTHING_GIVEN, stepped.reason, stepped.pageStatus);
        return visit.seeOther(`keys/${shown.id}?done=${done}`);
      }, 'UPDATE'),
    );
}

async function rotate(here: KeyVisit): Promise<Response> {
  const { visit, shown } = here;
  const given = readRotationForm(await visit.form(), visit.now);
  if (given.problems.size > 0) return showRotation(here, given, undefined, 422);
  const rotated = await orFailed(visit.ask<Rotated>(ROTATE, { input: { id: shown.id, ...given.input } }));
  if (rotated instanceof OperationFailed) {
    const { problems, reason, pageStatus } = rotated;
    return showRotation(here, { ...given, problems }, problems.size > 0 ? undefined : reason, pageStatus);
  }
  return visit.showSecret('New secret', `keys/${shown.id}`, <NewSecretPage here={here} rotated={rotated} />);
}

async function showRotation(
  here: KeyVisit,
  given: GivenRotation = NOTHING_GIVEN,
  problem?: string,
  status = 200,
): Promise<Response> {
  const { rotation, name } = here.shown;
  const children = await askChildren(here);
  return here.visit.page(
    `Rotate ${name}`,
    <Panel width="medium" title={rotation ? 'Rotation in progress' : 'Rotate secret'} back={{ to: here.base, name }}>
      {problem !== undefined && <Problem>{problem}</Problem>}
      {rotation ? (
        <RotationSteps here={here} rotation={rotation} />
      ) : here.rights.may('ROTATE') ? (
        <StartRotation here={here} given={given} children={children} />
      ) : (
        <p>A new secret would give you all permissions of this key. {here.rights.whyNot('ROTATE')}</p>
      )}
    </Panel>,
    status,
  );
}

/** Says that two secrets of the key work, and links to the page that ends this. */
export function RotationNotice({ here }: { here: KeyVisit }) {
  const { shown, rights, base } = here;
  if (!shown.rotation) return null;
  return (
    <Warning>
      Rotation in progress: two secrets work. <PreviousSecret here={here} rotation={shown.rotation} />{' '}
      {rights.may('FINISH_ROTATION') && (
        <a href={`${base}/rotation`}>{rights.may('ROLL_BACK_ROTATION') ? 'Finish it or roll it back' : 'Finish it'}</a>
      )}
    </Warning>
  );
}

/** The previous secret of a key: until when it works, and whether it is in use. */
function PreviousSecret({ here: { visit }, rotation }: { here: KeyVisit; rotation: ShownRotation }) {
  const { previousPrefix, previousEndsAt, previousLastUsedAt, startedAt } = rotation;
  return (
    <>
      The previous secret, <code>{previousPrefix}</code>,{' '}
      {previousEndsAt === null ? (
        'works until the new one is first used, and then for its grace period'
      ) : (
        <>
          expires <Time at={previousEndsAt} now={visit.now} />
        </>
      )}
      {'. '}
      {previousLastUsedAt === null ? (
        <>
          It has not been used since the rotation started <Time at={startedAt} now={visit.now} />.
        </>
      ) : (
        <strong>
          It is still in use: last <Time at={previousLastUsedAt} now={visit.now} />.
        </strong>
      )}
    </>
  );
}

/** The actions on a rotation in progress, each with its effect. */
function RotationSteps({ here, rotation }: { here: KeyVisit; rotation: ShownRotation }) {
  const { shown, rights, base } = here;
  const isInUse = rotation.previousLastUsedAt !== null;
  return (
    <>
      <Warning>
        <PreviousSecret here={here} rotation={rotation} />
      </Warning>
      {rotation.previousEndsAt === null && (
        <Step
          action={`${base}/rotation/activate`}
          button="Start the grace period"
          meaning="Use this once the new secret is in place. The previous one works until its grace period ends."
        />
      )}
      <Step
        action={`${base}/rotation/finish`}
        button="Finish now"
        isDangerous={isInUse}
        meaning={
          `The previous secret, ${rotation.previousPrefix}, stops working immediately; ${shown.prefix} keeps working. ` +
          (isInUse
            ? 'Anything that still uses the previous one stops working.'
            : 'It has not been used since the rotation.')
        }
      />
      {rights.may('ROLL_BACK_ROTATION') && (
        <Step
          action={`${base}/rotation/roll-back`}
          button="Roll back"
          isDangerous
          meaning={
            `The new secret, ${shown.prefix}, stops working immediately; ${rotation.previousPrefix} keeps working. ` +
            'Use this if the new secret was lost or leaked.'
          }
        />
      )}
    </>
  );
}

function Step({
  action,
  button,
  meaning,
  isDangerous = false,
}: {
  action: string;
  button: string;
  meaning: string;
  isDangerous?: boolean;
}) {
  return (
    <form method="post" action={action} class="step">
      <OnceOnly />
      <button class={isDangerous ? 'danger' : undefined}>{button}</button>
      <p>{meaning}</p>
    </form>
  );
}

/** A key with a new secret: see `RotatedApiKey`. */
interface Rotated {
  readonly key: string;
  readonly apiKey: { readonly rotation: Pick<ShownRotation, 'previousPrefix' | 'previousEndsAt'> | null };
  readonly disabled: readonly { readonly name: string }[];
}

/** The answer to a rotation: the only page that ever shows the new secret. */
function NewSecretPage({ here, rotated }: { here: KeyVisit; rotated: Rotated }) {
  const { shown, visit, rights, base } = here;
  const { rotation } = rotated.apiKey;
  return (
    <Panel width="medium" title={`New secret of ${shown.name}`}>
      <Done>Store this secret now: it is shown only once.</Done>
      <Secret of={shown.name} secret={rotated.key} />
      {rotated.disabled.length > 0 && (
        <Warning>
          Disabled, because this key created them: {rotated.disabled.map(({ name }) => name).join(', ')}
        </Warning>
      )}
      <h2>Next steps</h2>
      <ol>
        <li>Replace the previous secret wherever it is used.</li>
        {rotation && (
          <>
            <li>
              Check on <a href={base}>the page of the key</a> whether <code>{rotation.previousPrefix}</code> is still in
              use.
            </li>
            <li>
              Finish the rotation.{' '}
              {rotation.previousEndsAt === null ? (
                'The grace period starts when the new secret is first used.'
              ) : (
                <>
                  The grace period ends <Time at={rotation.previousEndsAt} now={visit.now} />.
                </>
              )}
            </li>
          </>
        )}
        {rights.isSelf && (
          <li>
            <a href={`${visit.root}sign-in`}>Sign in with the new secret</a>: you are signed in with the previous one.
          </li>
        )}
      </ol>
    </Panel>
  );
}
