import { hash } from 'node:crypto';
import { labelFields, restrictionFields } from '../../../../keys/key/index.ts';
import { dangersOf } from '../../dangers.ts';
import { permissionsOf } from '../../parts/grants.ts';
import { HiddenFields, KeyField } from '../../parts/field.tsx';
import { Fact, Problem, Time } from '../../parts/notice.tsx';
import { FieldFacts, type KeyTexts, LABELS, RESTRICTIONS } from '../../parts/key-texts.tsx';
import { Codes, PermissionWords } from '../../permission-words.tsx';
import { OnceOnly } from '../../sent-form.tsx';
import type { ShownKey } from '../key/shown-key.ts';
import type { Visit } from '../../visit.tsx';
import { type Draft, fieldsOf } from './form.tsx';

const LONG_MS = 366 * 86_400_000;

/** Warnings about the key, most serious first. */
function warningsAbout({ grants, expiresAt, allowFrom }: Preview, permissions: string[], now: number): string[] {
  return [
    ...dangersOf(permissions, grants),
    ...(expiresAt === null
      ? ['It never expires: if it leaks, it works until someone notices.']
      : Date.parse(expiresAt) - now > LONG_MS
        ? ['It is valid for more than a year: if it leaks, it works until someone notices.']
        : []),
    ...(allowFrom === null
      ? ['It can be used from anywhere. If you know where it is used, limit it to those networks.']
      : []),
  ];
}

/** Fields of a previewed key. */
export const PREVIEW = `query Preview($input: CreateApiKeyInput!) {
  previewApiKey(input: $input) {
    name ${LABELS} grants ${RESTRICTIONS} expiresAt effectivePermissions { resource actions } replaced { id name }
  }
}`;

export interface Preview extends Pick<
  ShownKey,
  'name' | 'grants' | 'expiresAt' | 'effectivePermissions' | keyof KeyTexts
> {
  /** Keys it would replace, that of the same name first. */
  readonly replaced: { id: string; name: string }[];
}

/** A key to replace, as far as the person can see it. */
export type Replaced = Pick<ShownKey, 'lastUsedAt'>;

/** Identifies the keys that a preview would delete, so that only these are deleted. Empty for none. */
export function replacedIn({ replaced }: Preview): string {
  const ids = replaced.map(({ id }) => id).toSorted();
  return ids.length > 0 ? hash('sha256', ids.join()) : '';
}

/** Shows the key to create, warnings, and the keys it replaces. */
export function PreviewPage({
  draft,
  preview,
  replaced,
  note,
  visit,
  keyProblem,
}: {
  draft: Draft;
  preview: Preview;
  /** Undefined if no key is replaced, or the person cannot see it. */
  replaced: Replaced | undefined;
  note?: string | undefined;
  visit: Visit;
  keyProblem?: string | undefined;
}) {
  const { now } = visit;
  const { name, grants, expiresAt, effectivePermissions } = preview;
  const permissions = permissionsOf(effectivePermissions);
  const warnings = warningsAbout(preview, permissions, now);
  return (
    <>
      <h1>Preview of {name}</h1>
      {note !== undefined && <Problem>{note}</Problem>}
      <dl class="facts">
        <Fact name="Name">{name}</Fact>
        <FieldFacts table={labelFields} of={preview} />
        <Fact name="Expires">
          <Time at={expiresAt} now={now} />
        </Fact>
        <FieldFacts table={restrictionFields} of={preview} />
        <dt>Grants</dt>
        <dd class="grants">
          <Codes of={grants} />
        </dd>
      </dl>
      <h2>This key can</h2>
      <PermissionWords permissions={permissions} />
      {warnings.length > 0 && (
        <section class="notice warning">
          <h2>Check before creating</h2>
          <ul>
            {warnings.map((warning) => (
              <li>{warning}</li>
            ))}
          </ul>
        </section>
      )}
      {preview.replaced.length > 0 && <WhatGoes preview={preview} replaced={replaced} now={now} />}
      <form method="post" action={`${visit.root}keys/new`}>
        <HiddenFields values={{ ...fieldsOf(draft), replaces: replacedIn(preview) }} />
        <OnceOnly />
        <KeyField visit={visit} problem={keyProblem} />
        <p class="actions">
          <button class={preview.replaced.length > 0 ? 'danger' : 'primary'} name="step" value="create">
            {preview.replaced.length > 0 ? `Delete ${keysIn(preview.replaced)} and create this one` : 'Create key'}
          </button>
          <button name="step" value="change" formnovalidate>
            Change
          </button>
        </p>
      </form>
      <p class="help">The secret is shown once, on the next page. Have a place ready to store it.</p>
    </>
  );
}

function WhatGoes({ preview, replaced, now }: { preview: Preview; replaced: Replaced | undefined; now: number }) {
  const [first, ...created] = preview.replaced;
  return (
    <section class="notice problem">
      <h2>To be deleted</h2>
      <p>
        The key <strong>{first!.name}</strong>
        {replaced && (
          <>
            {' '}
            (last used: <Time at={replaced.lastUsedAt} now={now} />)
          </>
        )}
        {created.length > 0 && `, and ${keysIn(created)} that it created: ${namesOf(created)}`}. Anything using{' '}
        {created.length > 0 ? 'their secrets' : 'its secret'} stops working immediately. You cannot undo this.
      </p>
    </section>
  );
}

const MAX_NAMED = 10;

function namesOf(keys: readonly { name: string }[]): string {
  const more = keys.length - MAX_NAMED;
  const names = keys.slice(0, MAX_NAMED).map(({ name }) => name);
  return [...names, ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

function keysIn({ length }: readonly unknown[]): string {
  return length === 1 ? 'one key' : `${length} keys`;
}
