import { isNone, keyFields, namesOf } from '../../../../keys/key/index.ts';
import {
  expiresAtOf,
  type ExpiryBounds,
  type ExpiryChoice,
  expiryChoiceIn,
  ExpiryField,
  HiddenFields,
  TextField,
} from '../../parts/field.tsx';
import { GrantsPicker } from '../../parts/grants-picker.tsx';
import { redactSecrets } from '../../../../keys/secret/index.ts';
import { accessField } from '../../access-levels.ts';
import { KeySum } from '../../key-sum.tsx';
import { type ChosenGrants, chosenIn, FIELDS, grantsInputOf, permissionsOf } from '../../parts/grants.ts';
import { FixFields, LinkButton, Problem, Warning } from '../../parts/notice.tsx';
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
import { type AskedGrantable, NO_MORE_KEYS } from '../grantable.ts';
import type { ShownKey } from '../key/shown-key.ts';
import { PRESET, presetsOf } from './presets.ts';

/** A key to create, as filled in. */
export interface Draft extends ChosenGrants, ExpiryChoice, KeyTexts {
  readonly name: string;
  /** Identifies the keys it replaces, as they were shown; empty for none. */
  readonly replaces: string;
}

/** The key to duplicate. */
export type Original = Pick<ShownKey, 'name' | 'grants' | keyof KeyTexts>;

/** Value for replacing a key before the preview has shown what that deletes. */
export const REPLACE = 'replace';

/** An empty form. */
export function emptyDraft(bounds: ExpiryBounds): Draft {
  return draftIn(new URLSearchParams(), bounds);
}

/** A form filled in from another key, except for its name and expiry. */
export function draftLike({ grants, ...original }: Original, bounds: ExpiryBounds): Draft {
  return {
    ...emptyDraft(bounds),
    ...keyTexts(original),
    roles: grants.filter((grant) => !grant.includes(':')),
    permissions: grants.filter((grant) => grant.includes(':')),
  };
}

/** The form as it was filled in. */
export function draftIn(form: URLSearchParams, bounds: ExpiryBounds): Draft {
  const text = (name: string) => form.get(name)?.trim() ?? '';
  return {
    name: text('name'),
    replaces: text('replaces'),
    ...keyTextsIn(form),
    ...chosenIn(form),
    ...expiryChoiceIn(form, bounds),
  };
}

/** Text fields of a draft. */
const TEXTS = ['name', ...namesOf(keyFields), 'expiry', 'date'];
/** Marks an address with a form from before a session ended. */
export const KEPT = 'kept';

/** Checks whether an address has values for the form. */
export function hasDraft(address: URLSearchParams): boolean {
  return [...address.keys()].some(
    (field) => [...TEXTS, FIELDS.role, FIELDS.permission].includes(field) || field.startsWith(accessField('')),
  );
}

/**
 * The query of an address that restores the form after signing in again. The form is kept nowhere else, and secrets are
 * removed, even from wrong fields.
 */
export function addressOfDraft(form: URLSearchParams): string {
  const texts = TEXTS.map((field): [string, string] => [field, redactSecrets(form.get(field) ?? '')]);
  const { roles, permissions } = chosenIn(form);
  const fields = [
    ...texts.filter(([, value]) => value !== ''),
    ...roles.map((role): [string, string] => [FIELDS.role, role]),
    ...permissionFields(permissions),
  ];
  return new URLSearchParams([...fields, [KEPT, '1']]).toString();
}

/** Permissions by resource, which keeps the address short. */
function permissionFields(permissions: readonly string[]): [string, string][] {
  return grantsInputOf({ roles: [], permissions }).permissions.map(({ resource, actions }) => [
    accessField(resource),
    actions.join(' '),
  ]);
}

/** Form fields for this draft, except for what it replaces. */
export function fieldsOf({ roles, permissions, replaces: _replaces, ...texts }: Draft) {
  return { ...texts, [FIELDS.role]: roles, [FIELDS.permission]: permissions };
}

/** The input of `createApiKey`, or the problems with expiry and numbers. */
export function inputOf(draft: Draft, bounds: ExpiryBounds): { input: object } | { refused: Refused } {
  const expiry = expiresAtOf(draft, bounds);
  const problems = valueProblems(draft);
  if ('problem' in expiry) problems.set('expiresAt', expiry.problem);
  if (problems.size > 0) return { refused: { problems } };
  const given = Object.entries(inputOfTexts(draft)).filter(([, value]) => !isNone(value));
  const input = {
    name: draft.name,
    ...Object.fromEntries(given),
    ...grantsInputOf(draft),
    ...expiry,
    overwrite: draft.replaces !== '',
  };
  return { input };
}

/** Why no key was created. */
export interface Refused {
  /** Problems by field of the input of `createApiKey`; those of no field under an empty name. */
  readonly problems: ReadonlyMap<string, string>;
  /** A problem of the whole form. */
  readonly message?: string | undefined;
  /** Set if a key already has the name. */
  readonly taken?: NameConflict | undefined;
}

/** The key that already has the name. */
export interface NameConflict {
  /** Its id; undefined if the person cannot see it. */
  readonly id: string | undefined;
  /** The same form may have created it just now. */
  readonly isMaybeOwn: boolean;
}

/** The place of each field of the input in the form. */
const PLACES: Readonly<Record<string, { id: string; label: string }>> = {
  name: { id: 'name', label: 'Name' },
  ...TEXT_PLACES,
  expiresAt: { id: 'expiry', label: 'Expires' },
  grants: { id: 'grants', label: 'Permissions' },
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
  const wrong = [...new Set([...problems.keys()].map((field) => (field in PLACES ? field : 'grants')))];
  return (
    <>
      <h1>New key</h1>
      {note !== undefined && <p class="notice">{note}</p>}
      {grantable.creatable === 0 && <Warning>{NO_MORE_KEYS}</Warning>}
      {refused && (
        <Problem>
          {refused.message !== undefined && <p>{refused.message}</p>}
          <FixFields fields={wrong.map((field) => PLACES[field]!)} />
          {refused.taken && <NameTaken root={root} draft={draft} taken={refused.taken} />}
        </Problem>
      )}
      <form method="post" action={`${root}keys/new`} class="builder" data-draft>
        <div>
          {/* Enter in a field presses the first button, which would otherwise be a preset. */}
          <button class="hidden" name="step" value="preview" tabindex={-1} aria-hidden="true">
            Preview
          </button>
          <TextField
            name="name"
            label="Name"
            help="Up to 100 letters, digits and spaces."
            value={draft.name}
            problem={problems.get('name')}
            required
            autofocus={refused === undefined}
          />
          <LabelFields texts={draft} problems={problems} />
          <ExpiryField bounds={bounds} chosen={draft} problem={problems.get('expiresAt')} />
          <div id="grants">
            <GrantsPicker grantable={grantable} chosen={draft} problem={wrongGrants}>
              <Presets grantable={grantable} />
            </GrantsPicker>
          </div>
          <RestrictionFields texts={draft} problems={problems} />
          <p class="actions">
            <button class="primary" name="step" value="preview">
              Preview
            </button>
            <LinkButton kind="quiet" to={`${root}keys`}>
              Cancel
            </LinkButton>
          </p>
          <p class="help">You can check everything before the key is created.</p>
        </div>
        <aside data-sum aria-label="Summary of the key">
          <KeySum name={draft.name} expiry="" {...sumOf(draft, grantable)} />
        </aside>
      </form>
    </>
  );
}

/** Buttons that fill in common permissions. Without scripts, they load the form again. */
function Presets({ grantable }: { grantable: AskedGrantable }) {
  const presets = presetsOf(grantable);
  if (presets.length === 0) return null;
  return (
    <div class="presets" role="group" aria-label="Presets">
      <span class="faint">Start from</span>
      {presets.map(({ id, title, permissions }) => (
        <button class="chip" name="step" value={PRESET + id} data-permissions={permissions.join(' ')} formnovalidate>
          {title}
        </button>
      ))}
    </div>
  );
}

/** The part of a choice that can be granted. */
function sumOf({ roles, permissions }: ChosenGrants, grantable: AskedGrantable) {
  const held = new Set(permissionsOf(grantable.permissions));
  const chosen = grantable.roles.filter(({ role }) => roles.includes(role));
  return {
    permissions: permissions.filter((permission) => held.has(permission)),
    roles: chosen.map(({ role, permissions: of }) => ({ name: role, includes: of && permissionsOf(of) })),
  };
}

function NameTaken({ root, draft, taken: { id, isMaybeOwn } }: { root: string; draft: Draft; taken: NameConflict }) {
  return (
    <>
      {isMaybeOwn && (
        <p>
          If you just created it and reloaded the page, it was not created twice. Its secret is not shown again. If you
          did not store it, rotate the key.
        </p>
      )}
      <p>
        {id !== undefined && (
          <>
            <a href={`${root}keys/${id}`}>Open {draft.name}</a>,{' '}
          </>
        )}
        choose another name, or check what replacing that key would delete:
      </p>
      <form method="post" action={`${root}keys/new`}>
        <HiddenFields values={fieldsOf(draft)} />
        <button name="step" value="replace">
          Replace it…
        </button>
      </form>
    </>
  );
}
