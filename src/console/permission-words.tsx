import { groupByAction, meaningOfAction } from '../keys/permissions/meanings.ts';

/** What permissions allow together, in words: a line for each action. @param permissions each as `RESOURCE:ACTION` */
export function PermissionWords({ permissions }: { permissions: Iterable<string> }) {
  const groups = groupByAction(permissions);
  if (groups.length === 0) return <p class="faint">Nothing.</p>;
  return (
    <ul class="words">
      {groups.map(({ action, resources }) => (
        <li>
          {capitalized(meaningOfAction(action))}{' '}
          {resources.map((resource, index) => (
            <>
              {index > 0 && ', '}
              <code>{resource}</code>
            </>
          ))}
        </li>
      ))}
    </ul>
  );
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
