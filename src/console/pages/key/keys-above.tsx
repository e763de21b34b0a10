import { Status } from '../../parts/status.tsx';
import { Time } from '../../parts/time.tsx';
import { permissionsOf } from '../../parts/grants.ts';
import type { KeyAbove } from './shown-key.ts';
import { countOf } from './key-facts.tsx';
import type { KeyVisit } from './with-key.tsx';

/** The keys above a key that take something away from it. */
export function KeysAbove({ here: { shown, visit } }: { here: KeyVisit }) {
  if (shown.limitedBy.length === 0) return null;
  return (
    <>
      <h3>Keys above it that hold it back</h3>
      <ul class="above">
        {shown.limitedBy.map((above) => (
          <li>
            <a href={`${visit.root}keys/${above.keyId}`}>{above.name ?? 'a key that you may not read'}</a>
            {above.status !== 'ACTIVE' && (
              <>
                {' is '}
                <Status is={above.status} />, and so this one is refused
              </>
            )}
            {reasonsOf(above).map((reason) => ` · ${reason}`)}
            {above.expiresAt !== null && (
              <>
                {' · ends '}
                <Time at={above.expiresAt} now={visit.now} />
              </>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

function reasonsOf({ permissions, limits, allowFrom }: KeyAbove): string[] {
  const taken = permissionsOf(permissions).length;
  return [
    ...(taken > 0 ? [`takes away ${countOf(taken, 'permission')}`] : []),
    ...(limits.length > 0 ? [`limited to ${limits.join(', ')}, together`] : []),
    ...(allowFrom === null ? [] : [`only from ${allowFrom.join(', ')}`]),
  ];
}
