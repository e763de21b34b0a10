import { restrictionTexts } from '../../../../keys/key/index.ts';
import { withoutIncluded } from '../../../../keys/permissions/index.ts';
import { permissionsOf } from '../../parts/grants.ts';
import { Card } from '../../parts/layout.tsx';
import { formatCount, KeyLink, LastUse, LinkButton, Status, Time } from '../../parts/notice.tsx';
import { PermissionGroups } from '../../parts/grants-picker.tsx';
import type { Visit } from '../../visit.tsx';
import type { CountedKeys, ParentKey, ShownKey } from './shown-key.ts';
import type { KeyVisit } from './with-key.tsx';

/** Child keys shown at first, most recently used first. */
const SHOWN = 50;
/** Maximum number of child keys that can be opened. */
const MAX_OPEN = 20;

const CHILDREN = `query Children($id: ID!) {
  apiKeyList(first: ${SHOWN}, createdBy: $id, sort: LAST_USED) {
    keys { id name status lastUsedAt branch { count lastUsedAt } } total hasMore
  }
}`;

/** A key that another one created. */
interface Child extends Pick<ShownKey, 'id' | 'name' | 'status' | 'lastUsedAt' | 'branch'> {
  /** Its child keys, if they are shown. */
  readonly children?: Children | undefined;
}

/** The child keys of a key that the person can see. */
export type Children = CountedKeys<Child>;

/**
 * Loads the child keys of a key, and those of the child keys that the address opens.
 * @throws OperationFailed
 */
export async function askChildren(here: Pick<KeyVisit, 'visit' | 'shown'>): Promise<Children> {
  const { visit, shown } = here;
  if (shown.branch.count === 0 || !visit.may('API_KEY:READ_OWN')) return { keys: [], total: 0, hasMore: false };
  const open = new Set((visit.c.req.queries('open') ?? []).slice(0, MAX_OPEN));
  return childrenOf(visit, shown.id, open);
}

async function childrenOf(visit: Visit, id: string, open: ReadonlySet<string>): Promise<Children> {
  const found = await visit.ask<Children>(CHILDREN, { id });
  const keys: Child[] = [];
  for (const child of byUse(found.keys))
    keys.push(open.has(child.id) ? { ...child, children: await childrenOf(visit, child.id, open) } : child);
  return { ...found, keys };
}

/** Sorts by the last use of the key or of one of its child keys. */
function byUse(keys: readonly Child[]): Child[] {
  const timeOf = (key: Child) => Date.parse(lastUseOf(key) ?? '1970');
  return keys.toSorted((one, other) => timeOf(other) - timeOf(one));
}

/** Last use of a key or its child keys; null if there was none. */
export function lastUseOf({ lastUsedAt, branch }: Pick<ShownKey, 'lastUsedAt' | 'branch'>): string | null {
  const uses = [lastUsedAt, branch.lastUsedAt].filter((at) => at !== null);
  return uses.toSorted((one, other) => Date.parse(one) - Date.parse(other)).at(-1) ?? null;
}

/** The parent keys of a key with what each denies, and its child keys to any depth. */
export function TreeSection({ here, children }: { here: KeyVisit; children: Children }) {
  const { shown, visit, rights, base } = here;
  if (shown.ancestors.length === 0 && shown.branch.count === 0) return null;
  const contain = rights.may('CONTAIN') && shown.branch.count > 0 && (
    <LinkButton kind="danger" to={`${base}/contain`}>
      Contain…
    </LinkButton>
  );
  return (
    <Card id="tree" title="Created by and child keys" aside={contain}>
      <p class="help">
        A key can do no more than its parent keys, and stops working when they do.
        {shown.branch.count > 0 && ` This one has ${formatCount(shown.branch.count, 'child key')}.`}
      </p>
      <Above visit={visit} ancestors={shown.ancestors.toReversed()}>
        <span aria-current="true">
          <strong>{shown.name}</strong> <Status is={shown.status} />
        </span>
        <ChildList here={here} of={shown.id} children={children} count={shown.branch.count} page="" />
      </Above>
    </Card>
  );
}

/** The parent keys of a key, from the top, each listed under the one that created it. */
function Above({
  visit,
  ancestors: [first, ...others],
  children,
}: {
  visit: Visit;
  ancestors: readonly ParentKey[];
  children?: unknown;
}) {
  return (
    <ul class="tree">
      <li>
        {first === undefined ? (
          children
        ) : (
          <>
            <span class="branch">
              <KeyLink root={visit.root} id={first.name === null ? null : first.keyId} name={first.name} />
              {first.status !== 'ACTIVE' && <Status is={first.status} />}
              <Denials visit={visit} parent={first} />
            </span>
            <Above visit={visit} ancestors={others}>
              {children}
            </Above>
          </>
        )}
      </li>
    </ul>
  );
}

/** Restrictions that a parent key puts on the key. */
function Denials({ visit, parent }: { visit: Visit; parent: ParentKey }) {
  const denied = withoutIncluded(permissionsOf(parent.permissions)).length;
  const reasons = restrictionTexts(parent, true);
  if (denied === 0 && reasons.length === 0 && parent.expiresAt === null) return null;
  return (
    <>
      {parent.expiresAt !== null && (
        <span class="faint">
          {'limits its expiry to '}
          <Time at={parent.expiresAt} now={visit.now} />
        </span>
      )}
      {reasons.map((reason) => (
        <span class="faint">{reason}</span>
      ))}
      {denied > 0 && (
        <details>
          <summary>{`denies ${formatCount(denied, 'permission')}`}</summary>
          <PermissionGroups of={parent.permissions} />
        </details>
      )}
    </>
  );
}

/** The child keys of a key. */
interface ListedChildren {
  readonly here: KeyVisit;
  /** The id of that key. */
  readonly of: string;
  readonly children: Children;
  /** Number of its child keys, at any depth. */
  readonly count: number;
  /** The page that this is on, relative to the page of the key. */
  readonly page: string;
}

function ChildList({ here, of, children: { keys, total, hasMore }, count, page }: ListedChildren) {
  const { visit } = here;
  if (count === 0) return null;
  const isLong = total > keys.length;
  // Child keys of the shown ones are included; the rest is not visible to this person.
  const known = keys.reduce((sum, { branch }) => sum + 1 + branch.count, 0);
  return (
    <>
      {keys.length > 0 && (
        <ul class="tree">
          {keys.map((child) => (
            <li>
              <span class="branch">
                <KeyLink root={visit.root} id={child.id} name={child.name} />
                <Status is={child.status} />
                <span class="faint">
                  <LastUse at={child.lastUsedAt} now={visit.now} words="used" />
                </span>
                {child.branch.count > 0 && <Opener here={here} child={child} page={page} />}
              </span>
              {child.children && (
                <ChildList here={here} of={child.id} children={child.children} count={child.branch.count} page={page} />
              )}
            </li>
          ))}
        </ul>
      )}
      {isLong && (
        <p class="help">
          <a href={`${visit.root}keys?by=${of}`}>
            {`All ${formatCount(total, 'key')}${hasMore ? ' or more' : ''} that it created`}
          </a>
        </p>
      )}
      {!isLong && count > known && (
        <p class="help">{`And ${formatCount(count - known, 'key')} that you cannot see.`}</p>
      )}
    </>
  );
}

/** Opens or folds the child keys of a key. */
function Opener({ here: { visit, base }, child, page }: { here: KeyVisit; child: Child; page: string }) {
  const open = visit.c.req.queries('open') ?? [];
  const others = child.children ? open.filter((id) => id !== child.id) : [...open, child.id];
  const query = new URLSearchParams(others.map((id): [string, string] => ['open', id]));
  const use = visit.query('use');
  if (use !== undefined) query.set('use', use);
  return (
    <a href={`${base}${page}${query.size > 0 ? `?${query.toString()}` : ''}#tree`} class="opener">
      <span aria-hidden="true">{child.children ? '▾ ' : '▸ '}</span>
      {formatCount(child.branch.count, 'child key')}
      <span class="hidden">{` of ${child.name}: ${child.children ? 'hide' : 'show'}`}</span>
    </a>
  );
}

/** The child keys that are deleted with a key, most recently used first. */
export function DeletedBranches({ here, children }: { here: KeyVisit; children: Children }) {
  const { id, branch } = here.shown;
  return <ChildList here={here} of={id} children={children} count={branch.count} page="/delete" />;
}
