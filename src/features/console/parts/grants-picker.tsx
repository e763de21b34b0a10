import { html, raw } from 'hono/html';
import type { Child } from 'hono/jsx';
import { mapYielding } from '../../../keys/basics/index.ts';
import { ALL_ACCESS, type ResourceActions } from '../../../keys/permissions/index.ts';
import { meaningOfPermission } from '../../../keys/permissions/meanings.ts';
import { accessField, CUSTOM, levelOf, levelsOf, NOTHING } from '../access-levels.ts';
import {
  type ChosenGrants,
  EXTENTS,
  FIELDS,
  type Grantable,
  type GrantableRole,
  grantsInputOf,
  permissionsOf,
  VERBS,
  WITHHELD,
} from './grants.ts';

/**
 * Lets somebody choose what a key may do: how much of each resource, and roles where that is not enough. Nothing else
 * is shown, whatever was sent.
 * @param has what the key has already: that can be kept or removed, even if it could not be granted anew
 * @param problem what is wrong with the choice
 * @param children what stands before the choice, to begin with
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
        Choose only what is needed. <strong>Write</strong> includes reading, <strong>All</strong> deleting;{' '}
        <strong>Custom</strong> shows single actions: <strong>own</strong> is what belongs to the key itself, such as
        keys that it has created; <strong>any</strong> is everything.
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
          <p class="help">* Your key cannot grant it again once it is removed.</p>
        )}
        {withheld.permissions > 0 && (
          <p class="help">
            {`${withheld.permissions} of the permissions of your key are not offered: `}
            by the policy of this service, no key grants them.
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

/** There can be a thousand rows: others have their turns between. */
async function AccessRows({ rows, held, ticked }: Omit<RowParts, 'row'> & { rows: readonly ResourceActions[] }) {
  const rowOf = async (row: ResourceActions) =>
    (await html`${<AccessRow row={row} held={held} ticked={ticked} />}`).toString();
  return raw((await Promise.all(await mapYielding(rows, rowOf))).join(''));
}

/**
 * How much of a resource: a level, or single actions, which show once they are chosen. A level is sent as what it
 * stands for. Where nothing was granted, single actions count without that choice, too.
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
        {VERBS.map((verb) => (
          <Choices row={row} verb={verb} held={held} ticked={ticked} />
        ))}
      </div>
    </div>
  );
}

function Choices({ row: { resource, actions }, verb, held, ticked }: RowParts & { verb: string }) {
  const offered = EXTENTS.filter((extent) => actions.some((action) => action === `${verb}_${extent}`));
  if (offered.length === 0) return null;
  return (
    <span>
      <span class="faint" aria-hidden="true">{`${capitalized(verb)} `}</span>
      {offered.map((extent) => {
        const permission = `${resource}:${verb}_${extent}`;
        const isGrantable = held.has(permission);
        const meaning = meaningOfPermission(permission);
        return (
          <label title={isGrantable ? meaning : `${meaning} Your key cannot grant it again once it is removed.`}>
            <input
              type="checkbox"
              name={FIELDS.permission}
              value={permission}
              checked={ticked.has(permission)}
              aria-label={`${resource}: ${verb.toLowerCase()} ${extent.toLowerCase()}`}
            />
            {` ${extent.toLowerCase()}`}
            {!isGrantable && '*'}
          </label>
        );
      })}
    </span>
  );
}

/** Rows to choose from, and those of what a key has or is chosen although they are not offered. */
function rowsOf({ permissions, offered }: Grantable, has: readonly string[]): ResourceActions[] {
  const places = new Map(offered.map((resource, place) => [resource, place]));
  const shown = new Set([...offered, ...has.map((permission) => permission.split(':')[0]!)]);
  const rows = grantsInputOf({ roles: [], permissions: [...permissionsOf(permissions), ...has] }).permissions;
  const placeOf = ({ resource }: ResourceActions) => places.get(resource) ?? offered.length;
  return rows.filter(({ resource }) => shown.has(resource)).toSorted((one, other) => placeOf(one) - placeOf(other));
}

function capitalized(word: string): string {
  return word.charAt(0) + word.slice(1).toLowerCase();
}

/** Lets somebody choose roles: whole sets of permissions. */
function RolePicker({
  grantable,
  withheld,
  chosen,
  has,
}: {
  grantable: readonly GrantableRole[];
  /** Those that the key of whoever chooses holds, and the policy lets no key grant. */
  withheld: readonly string[];
  chosen: readonly string[];
  /** Those that the key has already. */
  has: readonly string[];
}) {
  const names = new Set(grantable.map(({ role }) => role));
  const others = [...new Set([...has.filter((role) => !names.has(role)), ...withheld])];
  const roles = [...grantable.toReversed(), ...others.map((role): GrantableRole => ({ role, description: '' }))];
  const meaningOf = (role: string) =>
    (withheld.includes(role) ? WITHHELD : 'Your key cannot grant it.') +
    (has.includes(role) ? ' Once removed, your key cannot grant it again.' : '');
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
              <strong class="wrong"> It may do everything, now and later: other keys, too. Few keys need it.</strong>
            )}
          </span>
        </label>
      ))}
      <p class="help">A role may come to include more, as resources are added. Single permissions stay as they are.</p>
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
          <dd>{actions.map(wordsOf).join(', ')}</dd>
        </>
      ))}
    </dl>
  );
}

/** `READ_ANY` is "read any". */
function wordsOf(action: string): string {
  return action.toLowerCase().replace('_', ' ');
}
