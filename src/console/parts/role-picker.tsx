import { ALL_ACCESS } from '../../keys/permissions/built-in.ts';
import { type GrantableRole, permissionsOf, WITHHELD } from './grants.ts';

/** Lets somebody choose roles, which are rarely the least that is needed: so they are shown when asked for. */
export function RolePicker({
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
    (has.includes(role) ? ' Once taken away, it is gone.' : '');
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
