import { dangersOf } from './dangers.ts';
import { PermissionWords } from './permission-words.tsx';

/** A role with its permissions; undefined if unknown. */
export interface SummedRole {
  readonly name: string;
  readonly includes: readonly string[] | undefined;
}

/** Summary of the key to create. @param expiry as chosen, in words */
export function KeySum({
  name,
  expiry,
  permissions,
  roles,
}: {
  name: string;
  expiry: string;
  permissions: readonly string[];
  roles: readonly SummedRole[];
}) {
  const held = new Set(permissions);
  const all = new Set([...permissions, ...roles.flatMap(({ includes }) => includes ?? [])]);
  const dangers = dangersOf(
    all,
    roles.map((role) => role.name),
  );
  return (
    <>
      <h2>{name.trim() === '' ? 'New key' : name}</h2>
      {expiry !== '' && <p class="faint">{`Expires: ${expiry}`}</p>}
      <h3>This key can</h3>
      {(permissions.length > 0 || roles.length === 0) && <PermissionWords permissions={permissions} />}
      {roles.map((role) => (
        <RoleAdds name={role.name} added={role.includes?.filter((permission) => !held.has(permission))} />
      ))}
      {dangers.length > 0 && (
        <ul class="notice warning">
          {dangers.map((danger) => (
            <li>{danger}</li>
          ))}
        </ul>
      )}
    </>
  );
}

function RoleAdds({ name, added }: { name: string; added: readonly string[] | undefined }) {
  if (added === undefined)
    return (
      <p>
        and everything in the role <code>{name}</code>
      </p>
    );
  return (
    <div>
      <p>
        The role <code>{name}</code> {added.length === 0 ? 'adds nothing more.' : 'adds:'}
      </p>
      {added.length > 0 && <PermissionWords permissions={added} />}
    </div>
  );
}
