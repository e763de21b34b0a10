import { html, raw } from 'hono/html';
import type { Child } from 'hono/jsx';
import { mapYielding } from '../../../keys/basics/index.ts';
import { ALL_ACCESS, type ResourceActions } from '../../../keys/permissions/index.ts';
import { meaningOfPermission } from '../permission-meanings.ts';
import { capitalized } from '../permission-words.tsx';
import { accessField, CUSTOM, levelOf, levelsOf, NOTHING } from '../access-levels.ts';
import {
  byVerb,
  type ChosenGrants,
  FIELDS,
  type Grantable,
  type GrantableRole,
  grantsInputOf,
  permissionsOf,
  type VerbActions,
  WITHHELD,
} from './grants.ts';
import { wordsOfCode } from './notice.tsx';

/**
 * Lets a person choose the permissions of a key: a level for each resource, and roles. Only grants they can give are
 * shown, even if others were sent.
 * @param has grants of the key: they can be kept or removed, even if the person could not give them again
 * @param problem problem of the choice
 * @param children content before the choice
 */
export function GrantsPicker({
  grantable,
  chosen,
  has = { roles: [], permissions: [] },
  problem,
  children,
}: {
  grantable: Grantable;
  chosen: ChosenGrants;
  has?: ChosenGrants;
  problem?: string | undefined;
  children?: Child;
}) {
  const rows = rowsOf(grantable, [...has.permissions, ...chosen.permissions]);
  const held = new Set(permissionsOf(grantable.permissions));
  const ticked = new Set(chosen.permissions);
  const isPermission = (grant: string) => grant.includes(':');
  const withheld = {
    roles: grantable.withheld.filter((grant) => !isPermission(grant)),
    permissions: grantable.withheld.filter(isPermission).length,
  };
  return (
    <fieldset class="picker" data-grants aria-describedby={problem === undefined ? 'grants-help' : 'grants-problem'}>
      <legend>Permissions</legend>
      {problem !== undefined && (
        <p id="grants-problem" class="wrong">
          {problem}
        </p>
      )}
      {children}
      <RolePicker grantable={grantable.roles} withheld={withheld.roles} chosen={chosen.roles} has={has.roles} />
      <p id="grants-help" class="help">
        Choose only what is needed. <strong>Write</strong> includes reading, and <strong>All</strong> every action.{' '}
        <strong>Custom</strong> shows single actions: <strong>own</strong> covers what belongs to the key, such as keys
        that it created; <strong>any</strong> covers everything.
      </p>
      <div data-tools></div>
      <a class="skip" href="#after-permissions">
        Skip the permissions
      </a>
      <div class="rows">
        <AccessRows rows={rows} held={held} ticked={ticked} />
      </div>
      <div id="after-permissions">
        {has.permissions.some((permission) => !held.has(permission)) && (
          <p class="help">* If you remove this, your key cannot grant it again.</p>
        )}
        {withheld.permissions > 0 && (
          <p class="help">
            {`${withheld.permissions} permissions of your key are not offered: `} the policy of this service does not
            let keys grant them.
          </p>
        )}
      </div>
    </fieldset>
  );
}

interface RowParts {
  row: ResourceActions;
  held: ReadonlySet<string>;
  ticked: ReadonlySet<string>;
}

/** Renders up to a thousand rows in slices, so that other requests are not held up. */
async function AccessRows({ rows, held, ticked }: Omit<RowParts, 'row'> & { rows: readonly ResourceActions[] }) {
  const rowOf = async (row: ResourceActions) =>
    (await html`${<AccessRow row={row} held={held} ticked={ticked} />}`).toString();
  return raw((await Promise.all(await mapYielding(rows, rowOf))).join(''));
}

/**
 * Access to a resource: a level, or single actions once Custom is chosen. A level is sent as its actions. If nothing
 * was granted, single actions count even without choosing Custom.
 */
function AccessRow({ row, held, ticked }: RowParts) {
  const { resource, actions } = row;
  const levels = levelsOf(actions);
  const chosen = actions.filter((action) => ticked.has(`${resource}:${action}`));
  const level = levelOf(chosen, levels);
  const valueOf = (of: readonly string[]) => (of.length > 0 ? of.join(' ') : chosen.length > 0 ? NOTHING : '');
  const choices = [
    ...levels.map((one) => [one.name, valueOf(one.actions), one === level] as const),
    ...(actions.length > 1 || !level ? [['Custom', CUSTOM, !level] as const] : []),
  ];
  const isStarred = actions.some((action) => !held.has(`${resource}:${action}`));
  return (
    <div class="row">
      <span class="resource" id={`resource-${resource}`}>
        <code>{resource}</code>
        {isStarred && '*'}
      </span>
      <div class="levels" role="radiogroup" aria-labelledby={`resource-${resource}`}>
        {choices.map(([name, value, isChosen]) => (
          <label>
            <input type="radio" name={accessField(resource)} value={value} checked={isChosen} />
            <span>{name}</span>
          </label>
        ))}
      </div>
      <div class="finer" role="group" aria-label={`${resource}, single actions`}>
        {byVerb(actions).map((of) => (
          <Choices resource={resource} of={of} held={held} ticked={ticked} />
        ))}
      </div>
    </div>
  );
}

function Choices({
  resource,
  of: { verb, actions },
  held,
  ticked,
}: Omit<RowParts, 'row'> & { resource: string; of: VerbActions }) {
  const hasExtents = actions.some(({ extent }) => extent !== '');
  return (
    <span>
      {hasExtents && <span class="faint" aria-hidden="true">{`${capitalized(verb)} `}</span>}
      {actions.map(({ action, extent }) => {
        const permission = `${resource}:${action}`;
        const isGrantable = held.has(permission);
        const meaning = meaningOfPermission(permission);
        return (
          <label title={isGrantable ? meaning : `${meaning} If you remove it, your key cannot grant it again.`}>
            <input
              type="checkbox"
              name={FIELDS.permission}
              value={permission}
              checked={ticked.has(permission)}
              aria-label={`${resource}: ${verb} ${extent}`.trim()}
            />
            {` ${extent === '' ? verb : extent}`}
            {!isGrantable && '*'}
          </label>
        );
      })}
    </span>
  );
}

/** Rows to choose from, and rows of other resources that the key has or that are chosen. */
function rowsOf({ permissions, offered }: Grantable, has: readonly string[]): ResourceActions[] {
  const places = new Map(offered.map((resource, place) => [resource, place]));
  const shown = new Set([...offered, ...has.map((permission) => permission.split(':')[0]!)]);
  const rows = grantsInputOf({ roles: [], permissions: [...permissionsOf(permissions), ...has] }).permissions;
  const placeOf = ({ resource }: ResourceActions) => places.get(resource) ?? offered.length;
  return rows.filter(({ resource }) => shown.has(resource)).toSorted((one, other) => placeOf(one) - placeOf(other));
}

/** Lets a person choose roles. */
function RolePicker({
  grantable,
  withheld,
  chosen,
  has,
}: {
  grantable: readonly GrantableRole[];
  /** Roles of the person's own key that the policy lets no key grant. */
  withheld: readonly string[];
  chosen: readonly string[];
  /** Roles that the key already has. */
  has: readonly string[];
}) {
  const names = new Set(grantable.map(({ role }) => role));
  const others = [...new Set([...has.filter((role) => !names.has(role)), ...withheld])];
  const roles = [...grantable.toReversed(), ...others.map((role): GrantableRole => ({ role, description: '' }))];
  const meaningOf = (role: string) =>
    (withheld.includes(role) ? WITHHELD : 'Your key cannot grant this.') +
    (has.includes(role) ? ' If you remove it, your key cannot grant it again.' : '');
  if (roles.length === 0) return null;
  return (
    <div class="roles" role="group" aria-label="Roles">
      {roles.map(({ role, description, permissions }) => (
        <label class="choice">
          <input
            type="checkbox"
            name={FIELDS.role}
            value={role}
            checked={chosen.includes(role)}
            disabled={!names.has(role) && !has.includes(role)}
            data-includes={permissions && permissionsOf(permissions).join(' ')}
          />
          <span>
            <code>{role}</code> {names.has(role) ? description : meaningOf(role)}
            {role === ALL_ACCESS && (names.has(role) || has.includes(role)) && (
              <strong class="wrong"> Full control, including all keys. Rarely needed.</strong>
            )}
          </span>
        </label>
      ))}
      <p class="help">Roles grow when resources are added; permissions don't.</p>
    </div>
  );
}

export function PermissionGroups({ of }: { of: readonly ResourceActions[] }) {
  return (
    <dl class="facts permissions">
      {of.map(({ resource, actions }) => (
        <>
          <dt>
            <code>{resource}</code>
          </dt>
          <dd>{actions.map(wordsOfCode).join(', ')}</dd>
        </>
      ))}
    </dl>
  );
}
