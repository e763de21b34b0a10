import { OperationFailed, orFailed } from '../../operations.ts';
import type { Pages } from '../../visit.tsx';
import { Panel } from '../../parts/layout.tsx';
import { Done, Problem, Warning, formatCount, LinkButton, LastUse } from '../../parts/notice.tsx';
import { OnceOnly } from '../../sent-form.tsx';
import { IssuedSection } from './contain.tsx';
import type { IssuedChange } from './shown-key.ts';
import { askChildren, DeletedBranches, lastUseOf } from './tree.tsx';
import { type KeyVisit, withKey } from './with-key.tsx';

const DELETE = `mutation Delete($ids: [ID!]!) {
  deleteApiKeys(ids: $ids) { deleted keys { name } issued { name keyId what at disabled } }
}`;

/** Result of a deletion: see `DeletedApiKeys`. */
interface Deleted {
  deleted: number;
  keys: { name: string }[];
  issued: IssuedChange[];
}

const CHILD_KEYS_CHANGED =
  'Nothing was deleted: the child keys have changed since you opened this page. Check again what will be deleted.';

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
    return showDeletion(here, { typed, message: `Type the exact name of the key: ${shown.name}` }, 422);
  const deleted = await orFailed(visit.ask<Deleted>(DELETE, { ids: [shown.id] }));
  if (deleted instanceof OperationFailed)
    return showDeletion(here, { typed, message: deleted.reason }, deleted.pageStatus);
  return showDeleted(here, deleted);
}

/** The text that was typed to confirm, and why it was refused. */
interface Refused {
  typed: string;
  message: string;
}

async function showDeletion(here: KeyVisit, refused?: Refused, status = 200): Promise<Response> {
  const { shown, base, rights, visit } = here;
  const { count } = shown.branch;
  const children = await askChildren(here);
  return visit.page(
    `Delete ${shown.name}`,
    <Panel width="medium" title={`Delete ${shown.name}?`} back={{ to: base, name: shown.name }}>
      <Warning>
        {`This deletes ${formatCount(count + 1, 'key')}, `}
        <LastUse at={lastUseOf(shown)} now={visit.now} words="last used" />. Anything using {count > 0 ? 'them' : 'it'}{' '}
        stops working immediately. You cannot undo this.
        {rights.endsSession &&
          ` You are signed in with ${rights.isSelf ? 'this key' : 'one of its child keys'}: you will be signed out.`}
      </Warning>
      {count > 0 && (
        <>
          <h2 id="tree">{`Also to be deleted: ${formatCount(count, 'child key')}`}</h2>
          <DeletedBranches here={here} children={children} />
        </>
      )}
      <form method="post" action={`${base}/delete`} class="stack">
        <OnceOnly />
        {refused && <Problem>{refused.message}</Problem>}
        <input type="hidden" name="descendants" value={`${count}`} />
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
          <button class="danger">{`Delete ${formatCount(count + 1, 'key')}`}</button>
          <LinkButton to={base}>Cancel</LinkButton>
        </div>
      </form>
      {rights.may('DISABLE') && shown.disabledAt === null && (
        <p class="help">
          Not sure? <a href={`${base}/disable`}>Disable it</a> first: you can undo that.
        </p>
      )}
    </Panel>,
    status,
  );
}

/** Asks for confirmation if the key was used recently or has child keys. */
function isDangerous({ visit, shown }: KeyVisit): boolean {
  const lastUse = lastUseOf(shown);
  const isRecent = lastUse !== null && visit.now - Date.parse(lastUse) < RECENT_MS;
  return isRecent || shown.branch.count > 0;
}

function showDeleted({ visit, rights, base }: KeyVisit, { deleted, keys, issued }: Deleted): Promise<Response> {
  const names = keys.slice(0, NAMED).map(({ name }) => name);
  return visit.done(
    'Deleted',
    <Panel width="medium" title="Deleted">
      <Done>{`${formatCount(deleted, 'key')}: ${names.join(', ')}${keys.length > NAMED ? ', …' : ''}`}</Done>
      <IssuedSection visit={visit} issued={issued} />
      {issued.length > 0 && !rights.endsSession && (
        <p>
          If the key leaked, <a href={`${base}/contain`}>undo these changes</a>.
        </p>
      )}
      <p>
        {rights.endsSession ? (
          <a href={`${visit.root}sign-in`}>Sign in with another key</a>
        ) : (
          <a href={`${visit.root}keys`}>All keys</a>
        )}
      </p>
    </Panel>,
  );
}
