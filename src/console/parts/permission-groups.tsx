import type { ResourceActions } from '../../keys/permissions/index.ts';

/** Permissions by their resources. */
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
