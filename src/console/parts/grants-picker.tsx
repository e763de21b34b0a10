import { ALL_ACCESS, type ResourceActions } from '../../keys/permissions/index.ts';
import { meaningOfPermission } from '../../keys/permissions/meanings.ts';
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
 * Lets somebody choose what a key may do: single permissions first, roles where these are not enough. Nothing else is
 * shown, whatever was sent.
 * @param has what the key has already: that can be kept or removed, even if it could not be granted anew
 * @param problem what is wrong with the choice
 */
export function GrantsPicker({
  grantable,
  chosen,
  has = { roles: [], permissions: [] },
  problem,
}: {
  grantable: Grantable;
  chosen: ChosenGrants;
  has?: ChosenGrants;
  problem?: string | undefined;
}) {
  const rows = rowsOf(grantable.permissions, has.permissions);
  const held = new Set(permissionsOf(grantable.permissions));
  const ticked = new Set(chosen.permissions);
  const isPermission = (grant: string) => grant.includes(':');
  const withheld = {
    roles: grantable.withheld.filter((grant) => !isPermission(grant)),
    permissions: grantable.withheld.filter(isPermission).length,
  };
  const verbs = VERBS.filter((verb) => rows.some(({ actions }) => actions.some((action) => action.startsWith(verb))));
  return (
    <fieldset class="picker" data-grants aria-describedby={problem === undefined ? 'grants-help' : 'grants-problem'}>
      <legend>What it may do</legend>
      {problem !== undefined && (
        <p id="grants-problem" class="wrong">
          {problem}
        </p>
      )}
      <p id="grants-help" class="help">
        Choose what is needed, and nothing more. <strong>own</strong> is what belongs to the key itself, such as keys
        that it has created; <strong>any</strong> is all of the resource, and so its own, too.
      </p>
      <div data-tools></div>
      <a class="skip" href="#after-permissions">
        Skip the permissions
      </a>
      <div class="scroll">
        <table class="list">
          <thead>
            <tr>
              <th scope="col">Resource</th>
              {verbs.map((verb) => (
                <th scope="col">{capitalized(verb)}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr>
                <th scope="row">
                  <code>{row.resource}</code>
                </th>
                {verbs.map((verb) => (
                  <td data-label={capitalized(verb)}>
                    <Choices row={row} verb={verb} held={held} ticked={ticked} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {has.permissions.some((permission) => !held.has(permission)) && (
        <p class="help">* Your key cannot grant it again once it is removed.</p>
      )}
      <div id="after-permissions">
        {withheld.permissions > 0 && (
          <p class="help">
            {`${withheld.permissions} of the permissions of your key are not offered: `}
            by the policy of this service, no key grants them.
          </p>
        )}
        <RolePicker
          field={FIELDS.role}
          grantable={grantable.roles}
          withheld={withheld.roles}
          chosen={chosen.roles}
          has={has.roles}
        />
      </div>
      <div data-sum></div>
    </fieldset>
  );
}

function Choices({
  row: { resource, actions },
  verb,
  held,
  ticked,
}: {
  row: ResourceActions;
  verb: string;
  held: ReadonlySet<string>;
  ticked: ReadonlySet<string>;
}) {
  return (
    <>
      {EXTENTS.filter((extent) => actions.some((action) => action === `${verb}_${extent}`)).map((extent) => {
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
    </>
  );
}

/** What can be granted, and what a key has although it cannot, by the names of resources. */
function rowsOf(grantable: readonly ResourceActions[], has: readonly string[]): ResourceActions[] {
  const rows = grantsInputOf({ roles: [], permissions: [...permissionsOf(grantable), ...has] }).permissions;
  return rows.toSorted((one, other) => (one.resource < other.resource ? -1 : 1));
}

function capitalized(word: string): string {
  return word.charAt(0) + word.slice(1).toLowerCase();
}

/** Lets somebody choose roles, which are rarely the least that is needed: so they are shown when asked for. */
function RolePicker({
  field,
  grantable,
  withheld,
  chosen,
  has,
}: {
  field: string;
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
    <details class="roles" open={chosen.length > 0}>
      <summary>Roles: whole sets of permissions</summary>
      <p class="help">A role may come to include more, as resources are added. Single permissions stay as they are.</p>
      {roles.map(({ role, description, permissions }) => (
        <label class="choice">
          <input
            type="checkbox"
            name={field}
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
    </details>
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
