import { restrictionTexts } from '../../../../keys/key/index.ts';
import { withoutIncluded } from '../../../../keys/permissions/index.ts';
import { permissionsOf } from '../../parts/grants.ts';
import { formatCount, KeyLink, Status, Time, LastUse } from '../../parts/notice.tsx';
import { PermissionGroups } from '../../parts/grants-picker.tsx';
import type { Visit } from '../../visit.tsx';
import type { CountedKeys, ParentKey, ShownKey } from './shown-key.ts';
import type { KeyVisit } from './with-key.tsx';

/** How many keys that one key created are shown at first, those that were used last. */
const SHOWN = 50;
/** Of how many keys those that they created are shown, too. */
const MAX_OPEN = 20;

const CHILDREN = `query Children($id: ID!) {
  apiKeyList(first: ${SHOWN}, createdBy: $id, sort: LAST_USED) {
    keys { id name status lastUsedAt branch { count lastUsedAt } } total hasMore
  }
}`;

/** A key that another one created. */
interface Child extends Pick<ShownKey, 'id' | 'name' | 'status' | 'lastUsedAt' | 'branch'> {
  /** Those that it created, if they are shown. */
  readonly children?: Children | undefined;
}

/** The keys that a key created, as far as they may be read. */
export type Children = CountedKeys<Child>;

/**
 * The keys that a key created, and with those that the address names those that they created.
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

/** Those first of whose branch one was used last. */
function byUse(keys: readonly Child[]): Child[] {
  const timeOf = (key: Child) => Date.parse(lastUseOf(key) ?? '1970');
  return keys.toSorted((one, other) => timeOf(other) - timeOf(one));
}

/** When a key, or a child key of it, was last used; null if none ever was. */
export function lastUseOf({ lastUsedAt, branch }: Pick<ShownKey, 'lastUsedAt' | 'branch'>): string | null {
  const uses = [lastUsedAt, branch.lastUsedAt].filter((at) => at !== null);
  return uses.toSorted((one, other) => Date.parse(one) - Date.parse(other)).at(-1) ?? null;
}

/** Who made a key, and what it made, to any depth: with how many there are, and what each denies. */
export function TreeSection({ here, children }: { here: KeyVisit; children: Children }) {
  const { shown, visit, rights, base } = here;
  if (shown.ancestors.length === 0 && shown.branch.count === 0) return null;
  return (
    <section aria-labelledby="tree" class="card">
      <div class="head">
        <h2 id="tree">Who made it, and what it made</h2>
        {rights.may('CONTAIN') && shown.branch.count > 0 && (
          <a class="button danger" href={`${base}/contain`}>
            Contain…
          </a>
        )}
      </div>
      <p class="help">
        A key can do no more than its parent keys, and ends with them.
        {shown.branch.count > 0 && ` This one has ${formatCount(shown.branch.count, 'child key')}.`}
      </p>
      <Above visit={visit} ancestors={shown.ancestors.toReversed()}>
        <span aria-current="true">
          <strong>{shown.name}</strong> <Status is={shown.status} />
        </span>
        <ChildList here={here} of={shown.id} children={children} count={shown.branch.count} page="" />
      </Above>
    </section>
  );
}

/** The parent keys of a key, from the first one on, each in the list of the one that created it. */
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

/** What a parent key denies the key that the page is about. */
function Denials({ visit, parent }: { visit: Visit; parent: ParentKey }) {
  const denied = withoutIncluded(permissionsOf(parent.permissions)).length;
  const reasons = restrictionTexts(parent, true);
  if (denied === 0 && reasons.length === 0 && parent.expiresAt === null) return null;
  return (
    <>
      {parent.expiresAt !== null && (
        <span class="faint">
          {'lets it end '}
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

/** The keys that a key created. */
interface ListedChildren {
  readonly here: KeyVisit;
  /** The id of that key. */
  readonly of: string;
  readonly children: Children;
  /** How many child keys it has, all counted. */
  readonly count: number;
  /** The page that this is on, under the address of the key that the page is about. */
  readonly page: string;
}

function ChildList({ here, of, children: { keys, total, hasMore }, count, page }: ListedChildren) {
  const { visit } = here;
  if (count === 0) return null;
  const isLong = total > keys.length;
  // What descends from those that are shown, is; all else is of others.
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
        <p class="help">{`And ${formatCount(count - known, 'key')} that you may not read.`}</p>
      )}
    </>
  );
}

/** Shows what a key created, or hides it again. */
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

/** The keys that are deleted with a key, by branch, those that were used last first. */
export function DeletedBranches({ here, children }: { here: KeyVisit; children: Children }) {
  const { id, branch } = here.shown;
  return <ChildList here={here} of={id} children={children} count={branch.count} page="/delete" />;
}
