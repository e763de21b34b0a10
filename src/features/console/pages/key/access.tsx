import {
  type Action,
  exampleResource,
  type Permission,
  PermissionSet,
  type ResourceActions,
  withoutIncluded,
} from '../../../../keys/permissions/index.ts';
import { OperationFailed, orFailed } from '../../operations.ts';
import { byVerb, permissionsOf, SHOWN_ACTIONS, type VerbActions } from '../../parts/grants.ts';
import { capitalized, Codes, GrantWords } from '../../permission-words.tsx';
import { PermissionGroups } from '../../parts/grants-picker.tsx';
import { Card } from '../../parts/layout.tsx';
import { type KeyStatus, formatCount, formatNumber, KeyLink, LinkButton, wordsOfCode } from '../../parts/notice.tsx';
import { askOfKey, grantedTo, type ShownKey } from './shown-key.ts';
import { canNarrow } from './usage.tsx';
import type { KeyVisit } from './with-key.tsx';

const SYMBOLS = { used: '●', unused: '○', denied: '×', none: '' } as const;

/** Permissions of a key by resource and action, with the grant each comes from, and whether it was used. */
function AccessMatrix({ shown, catalog }: { shown: ShownKey; catalog: KnownCatalog | undefined }) {
  const rows = rowsOf(shown, catalog);
  const without = catalog?.resources.filter((name) => !rows.some(({ resource }) => resource === name)) ?? [];
  return (
    <>
      {rows.length > 0 && <MatrixTable rows={rows} />}
      <p class="legend">
        <span>{SYMBOLS.used} allowed and used</span> <span>{SYMBOLS.unused} allowed, never used</span>{' '}
        <span>{SYMBOLS.denied} granted, but denied by a parent key</span>
      </p>
      {without.length > 0 && (
        <details>
          <summary>{`No access to ${formatCount(without.length, 'other resource')}`}</summary>
          <p class="grants">
            <Codes of={without} />
          </p>
        </details>
      )}
    </>
  );
}

/** True for an action without ANY and OWN. */
function isOne({ actions }: VerbActions): boolean {
  return actions.length === 1 && actions[0]!.extent === '';
}

function MatrixTable({ rows }: { rows: readonly Row[] }) {
  const verbs = byVerb(rows[0]!.cells.map(({ action }) => action));
  return (
    <table class="matrix list">
      <thead>
        <tr>
          <th scope="col" rowspan={2}>
            Resource
          </th>
          {verbs.map((of) => (
            <th scope={isOne(of) ? 'col' : 'colgroup'} colspan={of.actions.length} {...(isOne(of) && { rowspan: 2 })}>
              {capitalized(of.verb)}
            </th>
          ))}
        </tr>
        <tr>
          {verbs
            .filter((of) => !isOne(of))
            .flatMap(({ verb, actions }) => actions.map(({ extent }) => <th scope="col">{extent || verb}</th>))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ resource, cells }) => (
          <tr>
            <th scope="row">
              <code>{resource}</code>
            </th>
            {cells.map((cell) => (
              <CellOf resource={resource} cell={cell} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function CellOf({ resource, cell }: { resource: string; cell: Cell }) {
  if (cell.state === 'none') return <td></td>;
  const words = wordsOf(cell);
  return (
    <td class={cell.state} title={`${resource}:${cell.action}: ${words}`} data-label={wordsOfCode(cell.action)}>
      <span aria-hidden="true">{SYMBOLS[cell.state]}</span>
      {cell.grantedBy.length > 0 && <small aria-hidden="true"> {sourceOf(cell)}</small>}
      <span class="hidden">{words}</span>
    </td>
  );
}

/** Names the roles it comes from, or says that it was granted directly. */
function sourceOf({ grantedBy }: Cell): string {
  const isDirect = grantedBy.some((grant) => !grant.startsWith('role '));
  return isDirect ? 'direct' : grantedBy.map((grant) => grant.slice('role '.length)).join(', ');
}

function wordsOf({ state, grantedBy, deniedBy }: Cell): string {
  const by = grantedBy.length > 0 ? ` by ${grantedBy.join(' and ')}` : '';
  if (state === 'denied') return `granted${by}, but denied by ${deniedBy}`;
  return `granted${by}, ${state === 'used' ? 'and used' : 'but never used'}`;
}

const ACCESS = '{ access(permission: $permission) { allowed permission grantedBy status deniedById deniedByName } }';

/** The answer to a permission check: see `ApiKeyAccess`. */
interface Access {
  allowed: boolean;
  permission: string;
  grantedBy: string[];
  status: KeyStatus;
  deniedById: string | null;
  deniedByName: string | null;
}

/** A permission check: the entered text with the answer, or with the problem of the text. */
interface AccessAnswer {
  readonly text: string;
  readonly access?: Access | undefined;
  readonly problem?: string;
}

/** Runs the permission check that the address asks for; undefined if it asks for none. */
export async function askMay({ visit }: Pick<KeyVisit, 'visit'>): Promise<AccessAnswer | undefined> {
  const text = visit.query('may');
  if (text === undefined) return undefined;
  const asked = askOfKey<{ access: Access }>(visit, ACCESS, '$permission: String!', { permission: text });
  const answer = await orFailed(asked);
  return answer instanceof OperationFailed ? { text, problem: answer.message } : { text, access: answer?.access };
}

function AccessQuestion({ here, asked }: { here: KeyVisit; asked: AccessAnswer | undefined }) {
  const { base, visit } = here;
  const isWrong = asked?.problem !== undefined;
  return (
    <form method="get" action={`${base}#may-it`} id="may-it" class="question">
      <label for="may">Check a permission</label>
      <input
        id="may"
        name="may"
        value={asked?.text}
        placeholder={`${exampleResource(visit.parts.keys.catalog)}:UPDATE_ANY`}
        required
        autocapitalize="characters"
        spellcheck={false}
        aria-describedby={asked && 'may-answer'}
        aria-invalid={isWrong ? 'true' : undefined}
      />
      <button>Check</button>
      {asked && (
        <p id="may-answer" class={isWrong ? 'wrong' : undefined} role={isWrong ? 'alert' : 'status'}>
          {asked.problem ?? (asked.access && <Answer access={asked.access} root={visit.root} />)}
        </p>
      )}
    </form>
  );
}

function Answer({ access, root }: { access: Access; root: string }) {
  const { allowed, permission, grantedBy, status, deniedById, deniedByName } = access;
  const grants = grantedBy.map((grant) => (grant.includes(':') ? grant : `role ${grant}`)).join(' and ');
  if (allowed)
    return (
      <>
        <strong>Allowed</strong>: {permission} is granted by {grants}.
      </>
    );
  return (
    <>
      <strong>Not allowed</strong>: {permission}{' '}
      {grantedBy.length === 0 ? (
        'is not among the permissions of this key.'
      ) : deniedById === null ? (
        `is granted by ${grants}, but the key is ${status.toLowerCase()}.`
      ) : (
        <>
          is granted by {grants}, but denied by <KeyLink root={root} id={deniedById} name={deniedByName} />.
        </>
      )}
    </>
  );
}

const CATALOG = '{ permissions { roles { role permissions { resource actions } } resources } }';

/** Loads the roles and resources that exist, if the person is allowed to see them. @throws OperationFailed */
export async function askCatalog({ visit }: Pick<KeyVisit, 'visit'>): Promise<KnownCatalog | undefined> {
  if (!visit.may('PERMISSION:READ_ANY')) return undefined;
  return visit.ask(CATALOG);
}

/** Permissions of a key in words, each with its grant. */
export function AccessSummary({ of: shown }: { of: ShownKey }) {
  const taken = shown.ancestors.flatMap(({ permissions }) => withoutIncluded(permissionsOf(permissions))).length;
  return (
    <GrantWords roles={shown.roles} permissions={permissionsOf(shown.permissions)}>
      {shown.unknownGrants.length > 0 && (
        <li>
          {shown.unknownGrants.map((grant) => (
            <>
              <code class="unknown">{grant}</code>{' '}
            </>
          ))}
          <span class="faint">no longer declared in svc-api.yaml, so it has no effect</span>
        </li>
      )}
      {taken > 0 && (
        <li class="faint">
          Except <a href="#tree">{formatCount(taken, 'permission')} that parent keys deny</a>.
        </li>
      )}
    </GrantWords>
  );
}

/** Permissions of a key by resource, their use, and the form for a permission check. */
export function AccessSection({
  here,
  catalog,
  asked,
}: {
  here: KeyVisit;
  catalog: KnownCatalog | undefined;
  asked: AccessAnswer | undefined;
}) {
  const { shown, rights, base } = here;
  const allowed = withoutIncluded(permissionsOf(shown.effectivePermissions));
  const neverUsed = new Set(permissionsOf(shown.unusedPermissions));
  const all = allowed.length;
  const unused = allowed.filter((permission) => neverUsed.has(permission)).length;
  const narrow = unused > 0 && rights.may('UPDATE') && canNarrow(shown) && (
    <LinkButton to={`${base}/narrow`}>Remove unused permissions…</LinkButton>
  );
  return (
    <Card id="access" title="Permissions" aside={narrow}>
      <p>
        {formatCount(all, 'permission')}
        {all > 0 && unused === all && ', none of them ever used. '}
        {unused > 0 && unused < all && `, ${formatNumber(unused)} of them never used.`}
        {unused === 0 && all > 0 && ', all of them used.'}
        {unused === all && shown.uses === 0 && 'If it is no longer needed, disable it first, then delete it.'}
      </p>
      <details>
        <summary>By resource</summary>
        <AccessMatrix shown={shown} catalog={catalog} />
      </details>
      {unused > 0 && unused < all && (
        <details>
          <summary>{`${formatCount(unused, 'permission')} never used`}</summary>
          <PermissionGroups of={shown.unusedPermissions} />
        </details>
      )}
      <AccessQuestion here={here} asked={asked} />
    </Card>
  );
}

/** Roles and resources that exist, as far as the person is allowed to see them. */
interface KnownCatalog {
  readonly roles: readonly { readonly role: string; readonly permissions: readonly ResourceActions[] }[];
  readonly resources: readonly string[];
}

interface Cell {
  readonly action: Action;
  /** `denied` if a parent key lacks it, `none` if it was not granted. */
  readonly state: 'used' | 'unused' | 'denied' | 'none';
  /** Roles and permissions that grant it; empty if unknown. */
  readonly grantedBy: readonly string[];
  /** The name of the nearest parent key that denies it. */
  readonly deniedBy?: string;
}

interface Row {
  readonly resource: string;
  readonly cells: readonly Cell[];
}

/** Resources that the key has permissions for, including those that a parent key denies. */
function rowsOf(key: ShownKey, catalog: KnownCatalog | undefined): Row[] {
  const granted = grantedTo(key);
  const grants = grantsOf(key, catalog);
  const used = new PermissionSet(permissionsOf(key.usedPermissions) as Permission[]);
  const limits = key.ancestors.map(({ name, permissions }) => ({
    name: name ?? 'a parent key',
    denied: new Set(permissionsOf(permissions)),
  }));
  const cellOf = (resource: string, action: Action): Cell => {
    if (!granted.has(resource, action)) return { action, state: 'none', grantedBy: [] };
    const grantedBy = grants.filter(({ allows }) => allows.has(resource, action)).map(({ grant }) => grant);
    const denier = limits.find(({ denied }) => denied.has(`${resource}:${action}`));
    if (denier) return { action, state: 'denied', grantedBy, deniedBy: denier.name };
    return { action, state: used.has(resource, action) ? 'used' : 'unused', grantedBy };
  };
  const all = granted.byResource();
  const shown = byVerb([...SHOWN_ACTIONS, ...all.flatMap(({ actions }) => actions)]);
  const columns = shown.flatMap(({ actions }) => actions.map(({ action }) => action));
  return all.map(({ resource }) => ({
    resource,
    cells: columns.map((action) => cellOf(resource, action)),
  }));
}

/** The grants of a key with the permissions of each. Only the catalog knows what a role includes. */
function grantsOf({ roles, permissions }: ShownKey, catalog: KnownCatalog | undefined) {
  const known = roles.flatMap((role) => {
    const grants = catalog?.roles.find((one) => one.role === role);
    return grants ? [{ grant: `role ${role}`, permissions: permissionsOf(grants.permissions) }] : [];
  });
  const single = permissionsOf(permissions).map((grant) => ({ grant, permissions: [grant] }));
  return [...known, ...single].map((one) => ({
    grant: one.grant,
    allows: new PermissionSet(one.permissions as Permission[]),
  }));
}
