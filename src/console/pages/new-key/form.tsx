import { type KeyRestrictions, UNRESTRICTED } from '../../../keys/key/index.ts';
import {
  defaultExpiry,
  expiresAtOf,
  type ExpiryBounds,
  type ExpiryChoice,
  expiryChoiceIn,
  ExpiryField,
  TextField,
} from '../../parts/field.tsx';
import { GrantsPicker } from '../../parts/grants-picker.tsx';
import { type ChosenGrants, chosenIn, grantsInputOf } from '../../parts/grants.ts';
import { Problem } from '../../parts/notice.tsx';
import {
  RESTRICTION_PLACES,
  RestrictionFields,
  restrictionsInput,
  type RestrictionTexts,
  restrictionTexts,
  restrictionTextsIn,
} from '../../parts/restrictions.tsx';
import { OnceOnly } from '../../sent-form.tsx';
import { type AskedGrantable, NO_MORE_KEYS } from '../grantable.ts';

/** A key that is to be created, as a form has it. */
export interface Draft extends ChosenGrants, ExpiryChoice, RestrictionTexts {
  readonly name: string;
  readonly description: string;
  /** Which keys it is to replace, as they were shown; empty for none. */
  readonly replaces: string;
}

/** A key that is to have the same. */
export interface Original extends KeyRestrictions {
  readonly name: string;
  readonly description: string | null;
  readonly grants: readonly string[];
}

/** Says that a key of the name is to be replaced, before it was shown what that deletes. */
export const REPLACE = 'replace';

/** A form that nobody has filled in. */
export function emptyDraft(bounds: ExpiryBounds): Draft {
  const texts = { name: '', description: '', replaces: '', ...restrictionTexts(UNRESTRICTED) };
  return { ...texts, roles: [], permissions: [], ...defaultExpiry(bounds) };
}

/** A form that is filled in with what another key has, but for its name and its expiry. */
export function draftLike({ description, grants, ...original }: Original, bounds: ExpiryBounds): Draft {
  return {
    ...emptyDraft(bounds),
    description: description ?? '',
    ...restrictionTexts(original),
    roles: grants.filter((grant) => !grant.includes(':')),
    permissions: grants.filter((grant) => grant.includes(':')),
  };
}

/** What was filled in. */
export function draftIn(form: URLSearchParams, bounds: ExpiryBounds): Draft {
  const text = (name: string) => form.get(name)?.trim() ?? '';
  return {
    name: text('name'),
    description: text('description'),
    replaces: text('replaces'),
    ...restrictionTextsIn(form),
    ...chosenIn(form),
    ...expiryChoiceIn(form, bounds),
  };
}

/** The fields of a form that has this draft, but for what it replaces. */
export function fieldsOf({
  roles,
  permissions,
  replaces: _replaces,
  ...texts
}: Draft): [name: string, value: string][] {
  return [
    ...Object.entries(texts),
    ...roles.map((role): [string, string] => ['role', role]),
    ...permissions.map((permission): [string, string] => ['permission', permission]),
  ];
}

/** The input of `createApiKey`, or what is wrong with the end. */
export function inputOf(draft: Draft, bounds: ExpiryBounds): { input: object } | { problem: string } {
  const expiry = expiresAtOf(draft, bounds);
  if ('problem' in expiry) return expiry;
  const { allowFrom, ...limits } = restrictionsInput(draft);
  const input = {
    name: draft.name,
    ...(draft.description !== '' && { description: draft.description }),
    ...grantsInputOf(draft),
    ...limits,
    ...(allowFrom && { allowFrom }),
    ...expiry,
    overwrite: draft.replaces !== '',
  };
  return { input };
}

/** Why no key was created. */
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
  ...RESTRICTION_PLACES,
};

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
        <RestrictionFields texts={draft} problems={problems} />
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
