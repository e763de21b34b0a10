import { OperationFailed, orFailed } from '../../operations.ts';
import type { Pages } from '../../visit.tsx';
import { Done, Problem, Warning, formatCount, LinkButton, BackLink, LastUse } from '../../parts/notice.tsx';
import { OnceOnly } from '../../sent-form.tsx';
import { IssuedSection } from './contain.tsx';
import type { IssuedChange } from './shown-key.ts';
import { askChildren, type Children, DeletedBranches, lastUseOf } from './tree.tsx';
import { type KeyVisit, withKey } from './with-key.tsx';

const DELETE = `mutation Delete($ids: [ID!]!) {
  deleteApiKeys(ids: $ids) { deleted keys { name } issued { name keyId what at disabled } }
}`;

/** What was deleted: see `DeletedApiKeys`. */
interface Deleted {
  deleted: number;
  keys: { name: string }[];
  issued: IssuedChange[];
}

const CHILD_KEYS_CHANGED =
  'Nothing was deleted: there are other child keys than when you opened this page. ' +
  'Look again at what is deleted with it.';

const NAMED = 50;
const RECENT_MS = 86_400_000;

export function addDeletion(pages: Pages): void {
  pages.get('keys/:id/delete', withKey(showDeletion, 'DELETE'));
  pages.post('keys/:id/delete', withKey(deleteKey, 'DELETE'));
}

async function deleteKey(here: KeyVisit): Promise<Response> {
  const { visit, shown } = here;
  const form = await visit.form();
  const typed = form.get('name')?.trim().normalize('NFC') ?? '';
  if (form.get('descendants') !== `${shown.branch.count}`)
    return showDeletion(here, { typed, message: CHILD_KEYS_CHANGED }, 409);
  if (isDangerous(here) && typed !== shown.name)
    return showDeletion(here, { typed, message: `Type the name of the key as it is: ${shown.name}` }, 422);
  const deleted = await orFailed(visit.ask<Deleted>(DELETE, { ids: [shown.id] }));
  if (deleted instanceof OperationFailed)
    return showDeletion(here, { typed, message: deleted.reason }, deleted.pageStatus);
  return visit.done('Deleted', <DeletedPage here={here} deleted={deleted} />);
}

/** What was typed, and why that was not enough. */
interface Refused {
  typed: string;
  message: string;
}

async function showDeletion(here: KeyVisit, refused?: Refused, status = 200): Promise<Response> {
  const children = await askChildren(here);
  const page = <DeletePage here={here} refused={refused} children={children} />;
  return here.visit.page(`Delete ${here.shown.name}`, page, status);
}

/** Whether somebody may miss it at once: it is in use, or others go with it. */
function isDangerous(here: KeyVisit): boolean {
  const lastUse = lastUseOf(here.shown);
  const isRecent = lastUse !== null && here.visit.now - Date.parse(lastUse) < RECENT_MS;
  return isRecent || here.shown.branch.count > 0;
}

function DeletePage({ here, refused, children }: { here: KeyVisit; refused: Refused | undefined; children: Children }) {
  const { shown, base, rights, visit } = here;
  const { count } = shown.branch;
  const lastUse = lastUseOf(here.shown);
  return (
    <div class="medium">
      <BackLink to={base}>{shown.name}</BackLink>
      <h1>Delete {shown.name}?</h1>
      <Warning>
        {`This deletes ${formatCount(count + 1, 'key')}, `}
        <LastUse at={lastUse} now={visit.now} words="last used" />. What uses {count > 0 ? 'them' : 'it'} is refused
        from the next request on. It cannot be undone.
        {rights.endsSession &&
          ` You have signed in with ${rights.isSelf ? 'this key' : 'a child key of it'}: you will be signed out.`}
      </Warning>
      {count > 0 && (
        <>
          <h2 id="tree">{`Deleted with it: ${formatCount(count, 'child key')}`}</h2>
          <DeletedBranches here={here} children={children} />
        </>
      )}
      <DeleteForm here={here} refused={refused} />
      {rights.may('DISABLE') && shown.disabledAt === null && (
        <p class="help">
          To see first whether anybody misses it, <a href={`${base}/disable`}>disable it</a>: that can be undone.
        </p>
      )}
    </div>
  );
}

function DeleteForm({ here, refused }: { here: KeyVisit; refused: Refused | undefined }) {
  const { shown, base } = here;
  return (
    <form method="post" action={`${base}/delete`} class="stack">
      <OnceOnly />
      {refused && <Problem>{refused.message}</Problem>}
      <input type="hidden" name="descendants" value={`${shown.branch.count}`} />
      {isDangerous(here) && (
        <>
          <label for="name">Type the name of the key to confirm: {shown.name}</label>
          <input
            id="name"
            name="name"
            value={refused?.typed}
            required
            autocomplete="off"
            spellcheck={false}
            aria-invalid={refused ? 'true' : undefined}
          />
        </>
      )}
      <div class="actions">
        <button class="danger">{`Delete ${formatCount(shown.branch.count + 1, 'key')}`}</button>
        <LinkButton to={base}>Cancel</LinkButton>
      </div>
    </form>
  );
}

function DeletedPage({
  here: { visit, rights, base },
  deleted: { deleted, keys, issued },
}: {
  here: KeyVisit;
  deleted: Deleted;
}) {
  return (
    <div class="medium">
      <h1>Deleted</h1>
      <Done>
        {`${formatCount(deleted, 'key')}: `}
        {keys
          .slice(0, NAMED)
          .map(({ name }) => name)
          .join(', ')}
        {keys.length > NAMED && ', …'}
      </Done>
      <IssuedSection visit={visit} issued={issued} />
      {issued.length > 0 && !rights.endsSession && (
        <p>
          After a leak, <a href={`${base}/contain`}>undo it</a>.
        </p>
      )}
      <p>
        {rights.endsSession ? (
          <a href={`${visit.root}sign-in`}>Sign in with another key</a>
        ) : (
          <a href={`${visit.root}keys`}>All keys</a>
        )}
      </p>
    </div>
  );
}
