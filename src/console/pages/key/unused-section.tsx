import { permissionsOf } from '../../parts/grants.ts';
import { PermissionGroups } from '../../parts/permission-groups.tsx';
import { formatCount } from './key-facts.tsx';
import { canNarrow } from './narrowing.ts';
import type { KeyVisit } from './with-key.tsx';

/** What a key may do and never did, with the way to take it away. */
export function UnusedSection({ here }: { here: KeyVisit }) {
  const { shown, rights, base } = here;
  const unused = permissionsOf(shown.unusedPermissions).length;
  if (unused === 0) return null;
  const all = permissionsOf(shown.effectivePermissions).length;
  return (
    <section aria-labelledby="unused">
      <div class="head">
        <h2 id="unused">Unused permissions</h2>
        {rights.may('UPDATE') && canNarrow(shown) && (
          <a class="button" href={`${base}/narrow`}>
            Narrow to what it uses…
          </a>
        )}
      </div>
      {unused === all ? (
        <p>
          Nothing of what it may do was ever used.{' '}
          {shown.uses === 0 && 'If nobody needs it any more, disable it; if nobody misses it then, delete it.'}
        </p>
      ) : (
        <details>
          <summary>{`${formatCount(unused, 'permission')} of ${all}`}</summary>
          <PermissionGroups of={shown.unusedPermissions} />
        </details>
      )}
    </section>
  );
}
