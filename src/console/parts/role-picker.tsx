import { ALL_ACCESS } from '../../keys/permissions/built-in.ts';
import { type GrantableRole, permissionsOf } from './grants.ts';

/** Lets somebody choose roles, which are rarely the least that is needed: so they are shown when asked for. */
export function RolePicker({
  field,
  grantable,
  chosen,
}: {
  field: string;
  grantable: readonly GrantableRole[];
  chosen: readonly string[];
}) {
  const names = new Set(grantable.map(({ role }) => role));
  const kept = chosen.filter((role) => !names.has(role)).map((role): GrantableRole => ({ role, description: '' }));
  const roles = [...grantable.toReversed(), ...kept];
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
            data-includes={permissions && permissionsOf(permissions).join(' ')}
          />
          <span>
            <code>{role}</code>{' '}
            {names.has(role) ? description : 'Your key cannot grant it: once taken away, it is gone.'}
            {role === ALL_ACCESS && (
              <strong class="wrong">
                {' '}
                It may do everything, now and later: other keys, too. Hardly any key needs it.
              </strong>
            )}
          </span>
        </label>
      ))}
    </details>
  );
}
