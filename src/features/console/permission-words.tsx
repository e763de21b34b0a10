import type { Child } from 'hono/jsx';
import { createsKeys, groupByAction, meaningOfAction, wordsOfGrants } from './permission-meanings.ts';

/** Permissions in words, with a line for each action. @param permissions each as `RESOURCE:ACTION` */
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

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Grants in words, each with its codes and whether it is a role or direct. */
export function GrantWords({
  roles,
  permissions,
  children,
}: {
  roles: readonly string[];
  permissions: readonly string[];
  /** More lines to show. */
  children?: Child;
}) {
  const others = permissions.filter((permission) => !createsKeys(permission));
  const further = permissions.filter(createsKeys);
  return (
    <ul class="access">
      {wordsOfGrants({ roles, permissions: others }).map(({ words, codes }) => (
        <li>
          {words} <Codes of={codes} />
          <small>{codes[0]!.includes(':') ? 'direct' : 'role'}</small>
        </li>
      ))}
      {further.length > 0 && (
        <li>
          <CreatesKeys permissions={further} /> <Codes of={further} />
          <small>direct</small>
        </li>
      )}
      {children}
    </ul>
  );
}

/** Codes of grants, or names of resources. */
export function Codes({ of: codes }: { of: readonly string[] }) {
  return (
    <>
      {codes.map((code) => (
        <>
          <code>{code}</code>{' '}
        </>
      ))}
    </>
  );
}

/** Grants shown in a line. */
const SHOWN = 3;

/**
 * Grants in a line, such as `Reads everything but credentials · Updates Docker`, with the codes as tooltips. Warns if a
 * key can create further keys.
 */
export function AccessLine({ roles, permissions }: { roles: readonly string[]; permissions: readonly string[] }) {
  const others = permissions.filter((permission) => !createsKeys(permission));
  const words = wordsOfGrants({ roles, permissions: others });
  const more = words.slice(SHOWN);
  return (
    <>
      {words.slice(0, SHOWN).map(({ words: text, codes }, index) => (
        <>
          {index > 0 && ' · '}
          <span title={codes.join(', ')}>{text}</span>
        </>
      ))}
      {more.length > 0 && (
        <span class="faint" title={more.flatMap(({ codes }) => codes).join(', ')}>{` and ${more.length} more`}</span>
      )}
      {others.length < permissions.length && (
        <>
          {words.length > 0 && ' '}
          <CreatesKeys permissions={permissions} />
        </>
      )}
    </>
  );
}

/** Warns if a key can create further keys, which are easy to overlook. */
export function CreatesKeys({ permissions }: { permissions: readonly string[] }) {
  const codes = permissions.filter(createsKeys);
  if (codes.length === 0) return null;
  return (
    <span class="tag warning" title={codes.join(', ')}>
      can create further keys
    </span>
  );
}
