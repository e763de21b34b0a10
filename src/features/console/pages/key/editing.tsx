import { hash } from 'node:crypto';
import { expiryIn, textOf, validateExpiry } from '../../../../keys/key/index.ts';
import { OperationFailed, orFailed } from '../../operations.ts';
import type { Pages } from '../../visit.tsx';
import { shortTime, TextField } from '../../parts/field.tsx';
import { GrantsPicker } from '../../parts/grants-picker.tsx';
import { type ChosenGrants, chosenIn, grantsInputOf, permissionsOf } from '../../parts/grants.ts';
import { Panel } from '../../parts/layout.tsx';
import { FixFields, Problem, LinkButton } from '../../parts/notice.tsx';
import {
  inputOfTexts,
  type KeyTexts,
  keyTexts,
  keyTextsIn,
  LabelFields,
  valueProblems,
  RestrictionFields,
  TEXT_PLACES,
} from '../../parts/key-texts.tsx';
import { OnceOnly } from '../../sent-form.tsx';
import { type AskedGrantable, findGrantable } from '../grantable.ts';
import type { ShownKey } from './shown-key.ts';
import { type KeyVisit, withKey } from './with-key.tsx';

const UPDATE = `mutation Edit($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { id } }`;

const CHANGED_MEANWHILE =
  'Someone else has changed the key since you opened this page. Your changes are below, not saved yet: compare them ' +
  'with the page of the key, and save again if they are still right.';

export function addEditing(pages: Pages): void {
  pages.get(
    'keys/:id/edit',
    withKey((here) => showEditing(here, { edited: editedFrom(here.shown) }), 'UPDATE'),
  );
  pages.post('keys/:id/edit', withKey(edit, 'UPDATE'));
}

async function edit(here: KeyVisit): Promise<Response> {
  const { visit, shown } = here;
  const form = await visit.form();
  const edited = editedIn(form);
  if (form.get('version') !== versionOf(shown)) return showEditing(here, { edited, summary: CHANGED_MEANWHILE }, 409);
  const problems = new Map([...problemsIn(edited, visit.now), ...valueProblems(edited)]);
  if (problems.size > 0) return showEditing(here, { edited, problems }, 422);
  const changes = changesFrom(editedFrom(shown), edited);
  if (Object.keys(changes).length === 0) return visit.seeOther(`keys/${shown.id}`);
  const done = await orFailed(visit.ask(UPDATE, { input: { id: shown.id, ...changes } }));
  if (done instanceof OperationFailed) return showEditing(here, { edited, ...said(done) }, done.pageStatus);
  return visit.seeOther(`keys/${shown.id}?done=saved`);
}

/** An edit as it was typed, with its problems. */
interface SubmittedEdit {
  readonly edited: EditedKey;
  /** By the names of fields. */
  readonly problems?: ReadonlyMap<string, string>;
  /** A problem of the whole edit. */
  readonly summary?: string;
}

/** The form field of each GraphQL field. */
const FIELDS: Readonly<Record<string, string>> = {
  expiresAt: 'expires',
  expiresIn: 'expires',
  roles: 'grants',
  permissions: 'grants',
  '': 'grants',
};

function said(error: OperationFailed): Pick<SubmittedEdit, 'problems' | 'summary'> {
  const { code, reason } = error;
  if (code === 'NAME_TAKEN' || code === 'NAME_CONFUSABLE') return { problems: new Map([['name', reason]]) };
  const problems = Array.from(error.problems, ([field, message]): [string, string] => [
    FIELDS[field] ?? field,
    message,
  ]);
  return problems.length > 0 ? { problems: new Map(problems) } : { summary: reason };
}

function endHelp({ reason, latest, required }: AskedGrantable['ends']): string {
  if (reason !== null) return `You cannot change its expiry: ${reason}`;
  const last = latest === null ? '' : ` At the latest ${shortTime(latest)}.`;
  return `For example 12h, 30d or 4w from now, or 2030-12-31T23:59:59Z.${last}${required ? '' : ' Empty: never.'}`;
}

/** The place of each field in the form. */
const PLACES: Readonly<Record<string, { id: string; label: string }>> = {
  name: { id: 'name', label: 'Name' },
  ...TEXT_PLACES,
  grants: { id: 'grants-problem', label: 'Permissions' },
  expires: { id: 'expires', label: 'Expires' },
};

async function showEditing(
  { visit, shown, apiKey, base }: KeyVisit,
  { edited, problems = new Map<string, string>(), summary }: SubmittedEdit,
  status = 200,
): Promise<Response> {
  const grantable = await findGrantable(visit, apiKey);
  return visit.page(
    `Edit ${shown.name}`,
    <Panel width="medium" title={`Edit ${shown.name}`} back={{ to: base, name: shown.name }}>
      {(summary !== undefined || problems.size > 0) && (
        <Problem>
          {summary}
          <FixFields fields={Array.from(problems.keys(), (field) => PLACES[field] ?? PLACES['grants']!)} />
        </Problem>
      )}
      <form method="post" action={`${base}/edit`} class="sheet">
        <OnceOnly />
        <input type="hidden" name="version" value={versionOf(shown)} />
        <TextField name="name" label="Name" value={edited.name} required problem={problems.get('name')} />
        <LabelFields texts={edited} problems={problems} />
        {shown.unknownGrants.length > 0 && (
          <p class="help">
            {`This key also has ${shown.unknownGrants.join(', ')}, no longer declared in svc-api.yaml. `} Changing its
            permissions removes them.
          </p>
        )}
        {grantable.reason !== null && (
          <p class="help">You can remove permissions, but not add any: {grantable.reason}</p>
        )}
        <GrantsPicker
          grantable={grantable}
          chosen={edited.grants}
          has={editedFrom(shown).grants}
          problem={problems.get('grants')}
        />
        <TextField
          name="expires"
          label="Expires"
          value={edited.expires}
          help={endHelp(grantable.ends)}
          readonly={grantable.ends.reason !== null}
          required={grantable.ends.required && shown.expiresAt !== null}
          problem={problems.get('expires')}
        />
        <RestrictionFields texts={edited} problems={problems} />
        <div class="actions">
          <button class="primary">Save</button>
          <LinkButton to={base}>Cancel</LinkButton>
        </div>
      </form>
    </Panel>,
    status,
  );
}

/** The fields of a key that can be edited, as a form has them. */
interface EditedKey extends KeyTexts {
  readonly name: string;
  readonly expires: string;
  readonly grants: ChosenGrants;
}

/** The fields as they are. */
function editedFrom(key: ShownKey): EditedKey {
  return {
    name: key.name,
    ...keyTexts(key),
    expires: key.expiresAt ?? '',
    grants: { roles: key.roles, permissions: permissionsOf(key.permissions) },
  };
}

function editedIn(form: URLSearchParams): EditedKey {
  const text = (name: string) => form.get(name)?.trim() ?? '';
  return {
    name: text('name'),
    ...keyTextsIn(form),
    expires: text('expires'),
    grants: chosenIn(form),
  };
}

/** Identifies the state of a key: a form made from an older state would undo someone else's change. */
function versionOf(key: ShownKey): string {
  return hash('sha256', JSON.stringify([editedFrom(key), key.unknownGrants])).slice(0, 16);
}

/** Problems of an expiry that cannot be sent, by field. @param now in ms since 1970 */
function problemsIn({ expires }: EditedKey, now: number): Map<string, string> {
  const issues = expires === '' ? [] : validateExpiry(expiryIn(expires), now);
  return new Map(issues.map(({ message }) => ['expires', message]));
}

/** The fields that differ, as `UpdateApiKeyInput` takes them. */
function changesFrom(before: EditedKey, after: EditedKey): object {
  const isSame = (one: readonly string[], other: readonly string[]) =>
    one.toSorted().join() === other.toSorted().join();
  const old = inputOfTexts(before);
  const fields = Object.entries(inputOfTexts(after)).filter(
    ([field, value]) =>
      !isSame([value ?? []].flat().map(textOf), [old[field as keyof typeof old] ?? []].flat().map(textOf)),
  );
  const { roles, permissions } = grantsInputOf(after.grants);
  return {
    ...(after.name !== before.name && { name: after.name }),
    ...(after.expires !== before.expires && (after.expires === '' ? { expiresAt: null } : expiryIn(after.expires))),
    ...Object.fromEntries(fields),
    ...(!isSame(after.grants.roles, before.grants.roles) && { roles }),
    ...(!isSame(after.grants.permissions, before.grants.permissions) && { permissions }),
  };
}

const SWITCH = `mutation Switch($id: ID!, $enabled: Boolean!) {
  setApiKeyEnabled(id: $id, enabled: $enabled) { id }
}`;

export function addSwitching(pages: Pages): void {
  for (const [path, enabled] of [
    ['enable', true],
    ['disable', false],
  ] as const)
    pages.post(`keys/:id/${path}`, async (visit) => {
      const id = visit.param('id');
      await visit.ask(SWITCH, { id, enabled });
      return visit.seeOther(`keys/${id}?done=${path}d`);
    });
  pages.get('keys/:id/disable', withKey(askToDisable, 'DISABLE'));
}

async function askToDisable({ visit, shown, base, rights }: KeyVisit): Promise<Response> {
  return visit.page(
    `Disable ${shown.name}`,
    <Panel width="narrow" title={`Disable ${shown.name}?`} back={{ to: base, name: shown.name }}>
      <p>
        This key and all its child keys stop working immediately.{' '}
        {rights.endsSession
          ? `You are signed in with ${rights.isSelf ? 'this key' : 'one of its child keys'}: you will be signed out, ` +
            'and cannot enable it again. Another key or the command line can.'
          : rights.whyNot('ENABLE') !== undefined &&
            `You cannot enable it again: ${rights.whyNot('ENABLE')} Another key or the command line can.`}
      </p>
      <form method="post" action={`${base}/disable`} class="actions">
        <OnceOnly />
        <button class="danger">Disable</button>
        <LinkButton to={base}>Cancel</LinkButton>
      </form>
    </Panel>,
  );
}
