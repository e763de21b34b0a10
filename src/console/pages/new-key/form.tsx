import { TextField } from '../../parts/field.tsx';
import { type ExpiryBounds, ExpiryField } from '../../parts/expiry-field.tsx';
import { GrantsPicker } from '../../parts/grants-picker.tsx';
import { Problem } from '../../parts/notice.tsx';
import { OnceOnly } from '../../sent-form.tsx';
import { type AskedGrantable, NO_MORE_KEYS } from '../grantable.ts';
import { type Draft, fieldsOf } from './draft.ts';

/** Why a draft is no key yet. */
export interface Refused {
  /** What is wrong with fields, by their names in the input of `createApiKey`; what concerns none has an empty one. */
  readonly problems: ReadonlyMap<string, string>;
  /** What is wrong as a whole. */
  readonly message?: string | undefined;
  /** A key has the name already. */
  readonly taken?: NameConflict | undefined;
}

/** A key that has the name already. */
export interface NameConflict {
  /** Its id; undefined if it may not be seen. */
  readonly id: string | undefined;
  /** Whether the same form may have created it just now. */
  readonly isMaybeOwn: boolean;
}

/** Where each field of the input is in the form. */
const PLACES: Readonly<Record<string, { id: string; label: string }>> = {
  name: { id: 'name', label: 'Name' },
  description: { id: 'description', label: 'Description' },
  expiresAt: { id: 'expiry', label: 'Expires' },
  grants: { id: 'grants', label: 'What it may do' },
  limits: { id: 'limits', label: 'Limits' },
  allowFrom: { id: 'networks', label: 'Used from' },
};

/** The form for a new key. */
export function NewKeyForm({
  root,
  draft,
  grantable,
  bounds,
  refused,
  note,
}: {
  root: string;
  draft: Draft;
  grantable: AskedGrantable;
  bounds: ExpiryBounds;
  refused?: Refused | undefined;
  note?: string | undefined;
}) {
  const problems = refused?.problems ?? new Map<string, string>();
  const wrongGrants = ['roles', 'permissions', ''].flatMap((field) => problems.get(field) ?? []).join(' ') || undefined;
  const wrong = [...problems.keys()].map((field) => (field in PLACES ? field : 'grants'));
  return (
    <>
      <div class="head">
        <h1>New key</h1>
      </div>
      {note !== undefined && <p class="notice">{note}</p>}
      {grantable.creatable === 0 && <p class="notice warning">{NO_MORE_KEYS}</p>}
      {refused && (
        <Problem>
          {refused.message !== undefined && <p>{refused.message}</p>}
          {wrong.length > 0 && (
            <p>
              What to fix:{' '}
              {[...new Set(wrong)].map((field, index) => (
                <>
                  {index > 0 && ', '}
                  <a href={`#${PLACES[field]!.id}`}>{PLACES[field]!.label}</a>
                </>
              ))}
            </p>
          )}
          {refused.taken && <NameTaken root={root} draft={draft} taken={refused.taken} />}
        </Problem>
      )}
      <form method="post" action={`${root}keys/new`} class="sheet">
        <OnceOnly />
        <TextField
          name="name"
          label="Name"
          help="Letters, digits and spaces, at most 100: by it, people know the key."
          value={draft.name}
          problem={problems.get('name')}
          required
          autofocus={refused === undefined}
        />
        <TextField
          name="description"
          label="Description"
          help="What it is for, and whom to ask."
          value={draft.description}
          problem={problems.get('description')}
        />
        <ExpiryField bounds={bounds} chosen={draft} problem={problems.get('expiresAt')} />
        <div id="grants">
          <GrantsPicker grantable={grantable} chosen={draft} problem={wrongGrants} />
        </div>
        <fieldset>
          <legend>How it may be used</legend>
          <TextField
            name="limits"
            label="Limits"
            help="How many requests it may make, such as 100/m, 5000/d. Left empty: those of the service."
            value={draft.limits}
            problem={problems.get('limits')}
          />
          <TextField
            name="networks"
            label="Used from"
            help="From where it may be used, such as 10.0.0.0/8, 2001:db8::/32. Left empty: from anywhere."
            value={draft.networks}
            problem={problems.get('allowFrom')}
          />
        </fieldset>
        <p class="actions">
          <button class="primary" name="step" value="preview">
            Preview
          </button>
          <a class="button quiet" href={`${root}keys`}>
            Cancel
          </a>
        </p>
        <p class="help">Nothing is created yet: the preview shows what the key would be.</p>
      </form>
    </>
  );
}

function NameTaken({ root, draft, taken: { id, isMaybeOwn } }: { root: string; draft: Draft; taken: NameConflict }) {
  return (
    <>
      {isMaybeOwn && (
        <p>
          If you have just created it and opened that page again: it was not created twice. Its secret is not shown
          again; if you have not kept it, rotate the key.
        </p>
      )}
      <p>
        {id !== undefined && (
          <>
            <a href={`${root}keys/${id}`}>Look at the key {draft.name}</a>,{' '}
          </>
        )}
        choose another name, or see what replacing that key would delete:
      </p>
      <form method="post" action={`${root}keys/new`}>
        <OnceOnly />
        {fieldsOf(draft).map(([field, value]) => (
          <input type="hidden" name={field} value={value} />
        ))}
        <button name="step" value="replace">
          Replace it…
        </button>
      </form>
    </>
  );
}
