import { Status } from '../../parts/status.tsx';
import { Time } from '../../parts/time.tsx';
import { permissionsOf } from '../../parts/grants.ts';
import type { ParentKey } from './shown-key.ts';
import { formatCount } from './key-facts.tsx';
import type { KeyVisit } from './with-key.tsx';

/** The parent keys of a key that take something away from it. */
export function ParentKeys({ here: { shown, visit } }: { here: KeyVisit }) {
  if (shown.limitedBy.length === 0) return null;
  return (
    <>
      <h3>Parent keys that limit it</h3>
      <ul class="parents">
        {shown.limitedBy.map((parent) => (
          <li>
            <a href={`${visit.root}keys/${parent.keyId}`}>{parent.name ?? 'a key that you may not read'}</a>
            {parent.status !== 'ACTIVE' && (
              <>
                {' is '}
                <Status is={parent.status} />, and so this one is refused
              </>
            )}
            {reasonsOf(parent).map((reason) => ` · ${reason}`)}
            {parent.expiresAt !== null && (
              <>
                {' · ends '}
                <Time at={parent.expiresAt} now={visit.now} />
              </>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

function reasonsOf({ permissions, limits, allowFrom }: ParentKey): string[] {
  const taken = permissionsOf(permissions).length;
  return [
    ...(taken > 0 ? [`takes away ${formatCount(taken, 'permission')}`] : []),
    ...(limits.length > 0 ? [`limited to ${limits.join(', ')}, together`] : []),
    ...(allowFrom === null ? [] : [`only from ${allowFrom.join(', ')}`]),
  ];
}
