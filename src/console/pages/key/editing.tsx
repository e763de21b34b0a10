import { OperationFailed } from '../../operations.ts';
import type { Pages } from '../../page-routes.ts';
import { shortTime } from '../../parts/expiry-field.tsx';
import { TextField } from '../../parts/field.tsx';
import { GrantsPicker } from '../../parts/grants-picker.tsx';
import { Problem } from '../../parts/notice.tsx';
import { OnceOnly } from '../../sent-form.tsx';
import { type AskedGrantable, findGrantable } from '../grantable.ts';
import { changesFrom, type EditedKey, editedFrom, editedIn, problemsIn, versionOf } from './edited-key.ts';
import { BackToKey, type KeyVisit, withKey } from './with-key.tsx';

const UPDATE = `mutation Edit($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { id } }`;

const CHANGED_MEANWHILE =
  'Somebody else has changed the key since you opened this page. Below is what you have typed: compare it with the ' +
  'page of the key, and save again if it is still what you want.';

/** Adds the page on which a key is edited. */
export function addEditing(pages: Pages): void {
  pages.get(
    'keys/:id/edit',
    withKey((here) => showEditing(here, { edited: editedFrom(here.shown) }), 'UPDATE'),
  );
  pages.post(
    'keys/:id/edit',
    withKey(async (here) => {
      const { visit, shown } = here;
      const form = await visit.form();
      const edited = editedIn(form);
      if (form.get('version') !== versionOf(shown))
        return showEditing(here, { edited, summary: CHANGED_MEANWHILE }, 409);
      const problems = problemsIn(edited, visit.now);
      if (problems.size > 0) return showEditing(here, { edited, problems }, 422);
      const changes = changesFrom(editedFrom(shown), edited);
      if (Object.keys(changes).length === 0) return visit.seeOther(`keys/${shown.id}`);
      try {
        await visit.ask(UPDATE, { input: { id: shown.id, ...changes } });
      } catch (error) {
        if (error instanceof OperationFailed) return showEditing(here, { edited, ...said(error) }, error.pageStatus);
        throw error;
      }
      return visit.seeOther(`keys/${shown.id}?done=saved`);
    }, 'UPDATE'),
  );
}

/** What was typed, and what is wrong with it. */
interface SubmittedEdit {
  readonly edited: EditedKey;
  /** By the names of fields. */
  readonly problems?: ReadonlyMap<string, string>;
  /** What is wrong with all of it. */
  readonly summary?: string;
}

/** The fields of the form that those of GraphQL are edited by. */
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

async function showEditing(here: KeyVisit, given: SubmittedEdit, status = 200): Promise<Response> {
  const grantable = await findGrantable(here.visit, here.apiKey);
  return here.visit.page(
    `Edit ${here.shown.name}`,
    <EditPage here={here} given={given} grantable={grantable} />,
    status,
  );
}

/** What may be written for the end. */
function endHelp({ reason, latest, required }: AskedGrantable['ends']): string {
  if (reason !== null) return `You cannot change its expiry: ${reason}`;
  const last = latest === null ? '' : ` ${shortTime(latest)} at the latest.`;
  return `After 12h, 30d or 4w from now, or at 2030-12-31T23:59:59Z.${last}${required ? '' : ' Empty for never.'}`;
}

function EditPage({ here, given, grantable }: { here: KeyVisit; given: SubmittedEdit; grantable: AskedGrantable }) {
  const { shown, base } = here;
  const { edited, problems = new Map<string, string>(), summary } = given;
  return (
    <div class="medium">
      <BackToKey here={here} />
      <h1>Edit {shown.name}</h1>
      {(summary !== undefined || problems.size > 0) && (
        <Problem>{summary ?? `Not saved: ${[...problems.values()].join(' ')}`}</Problem>
      )}
      <form method="post" action={`${base}/edit`} class="sheet">
        <OnceOnly />
        <input type="hidden" name="version" value={versionOf(shown)} />
        <TextField name="name" label="Name" value={edited.name} required problem={problems.get('name')} />
        <TextField
          name="description"
          label="Description"
          value={edited.description}
          help="What it is for, and whom to ask."
          problem={problems.get('description')}
        />
        {shown.unknownGrants.length > 0 && (
          <p class="help">
            {`It also has ${shown.unknownGrants.join(', ')}, not declared here any more. `}
            Whoever changes what it may do takes that away.
          </p>
        )}
        {grantable.reason !== null && (
          <p class="help">You may take away from what it may do, and add nothing to it: {grantable.reason}</p>
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
        <TextField
          name="limits"
          label="Limits"
          value={edited.limits}
          help="Requests a second, minute, hour, day or month, such as 100/m, 5000/d. Empty for none of its own."
          problem={problems.get('limits')}
        />
        <TextField
          name="allowFrom"
          label="Used from"
          value={edited.allowFrom}
          help="Networks, such as 10.0.0.0/8, 2001:db8::/32. Empty for anywhere."
          problem={problems.get('allowFrom')}
        />
        <div class="actions">
          <button class="primary">Save</button>
          <a class="button" href={base}>
            Cancel
          </a>
        </div>
      </form>
    </div>
  );
}
