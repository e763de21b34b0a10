import { MAX_LINE_LENGTH } from '../../../../keys/key/index.ts';
import { printable } from '../../../../keys/basics/index.ts';
import { AUDITED_FIELDS, type AuditedEntry, AuditEntries } from '../../parts/audit-entries.tsx';
import { Done, Status, Warning, LinkButton } from '../../parts/notice.tsx';
import type { Pages, Visit, VisitHandler } from '../../visit.tsx';
import { AccessSection, AccessSummary, askCatalog, askMay } from './access.tsx';
import { addContainment, IssuedSection } from './contain.tsx';
import { addDeletion } from './deletion.tsx';
import { addEditing, addSwitching } from './editing.tsx';
import { addNarrowing, askUsage, UsageSection } from './usage.tsx';
import { addRotation, RotationNotice } from './rotation.tsx';
import { idOf } from './shown-key.ts';
import { askChildren, TreeSection } from './tree.tsx';
import { KeyFacts, type KeyVisit, withKey } from './with-key.tsx';

const QUERY = `query Timeline($id: String!) {
  auditLog(first: 20, apiKey: $id) { edges { node { ${AUDITED_FIELDS} } } }
}`;

/** What was done to the key that the address names, if the person may know. @throws OperationFailed */
async function askTimeline(visit: Visit): Promise<AuditedEntry[] | undefined> {
  if (!visit.may('LOGS:READ_ANY')) return undefined;
  const { edges } = await visit.ask<{ edges: { node: AuditedEntry }[] }>(QUERY, { id: idOf(visit) });
  return edges.map(({ node }) => node);
}

/** What was done to a key, the newest first. */
function Timeline({ here: { visit, shown }, entries }: { here: KeyVisit; entries: readonly AuditedEntry[] }) {
  return (
    <section aria-labelledby="timeline" class="card">
      <div class="head">
        <h2 id="timeline">Timeline</h2>
        <a href={`${visit.root}audit-log?key=${shown.id}`}>All in the audit log</a>
      </div>
      {entries.length > 0 ? (
        <AuditEntries root={visit.root} now={visit.now} entries={entries} />
      ) : (
        <p class="faint">You can see no entry about this key, or its entries were pruned.</p>
      )}
    </section>
  );
}

/** What the page says after a form was sent, by the field `done` of its address. */
const DONE = {
  activated: 'The grace period of the previous secret has started.',
  disabled: 'Key disabled. It and its child keys are refused from now on.',
  enabled: 'Key enabled.',
  finished: 'Rotation finished. Only the new secret works.',
  narrowed: 'The key can now do only what it has used.',
  'rolled-back': 'Rotation rolled back. Only the previous secret works.',
  saved: 'Saved.',
} as const;

const CREATOR = 'query Creator($id: ID!) { apiKey(id: $id) { name } }';

const answerOverview: VisitHandler = withKey(async (here) => {
  const asides = await askAsides(here);
  const status = asides.asked?.problem === undefined ? 200 : 400;
  return here.visit.page(here.shown.name, <Overview here={here} asides={asides} />, status);
});

/** All that the page shows beside the key itself. @throws OperationFailed */
async function askAsides(here: KeyVisit) {
  const [creatorName, catalog, asked, usage, children, entries] = await Promise.all([
    askCreatorName(here),
    askCatalog(here),
    askMay(here),
    askUsage(here.visit),
    askChildren(here),
    askTimeline(here.visit),
  ]);
  return { creatorName, catalog, asked, usage, children, entries };
}

async function askCreatorName({ visit, shown: { createdBy } }: KeyVisit): Promise<string | null> {
  if (createdBy === null || !visit.may('API_KEY:READ_OWN')) return null;
  return (await visit.ask<{ name: string } | null>(CREATOR, { id: createdBy }))?.name ?? null;
}

function Overview({ here, asides }: { here: KeyVisit; asides: Awaited<ReturnType<typeof askAsides>> }) {
  const { visit, rights, shown } = here;
  const done = Object.entries(DONE).find(([word]) => word === visit.query('done'))?.[1];
  return (
    <>
      {done !== undefined && <Done>{done}</Done>}
      {rights.isPrevious && (
        <Warning>
          You have signed in with a previous secret of your key: it shows, but changes nothing. Sign in with the new
          one.
        </Warning>
      )}
      <KeyHead here={here} />
      <RotationNotice here={here} />
      <section class="card summary" aria-label="Summary">
        <AccessSummary of={shown} />
        <KeyFacts here={here} creatorName={asides.creatorName} />
      </section>
      <UsageSection here={here} usage={asides.usage} />
      <TreeSection here={here} children={asides.children} />
      <AccessSection here={here} catalog={asides.catalog} asked={asides.asked} />
      <IssuedSection visit={visit} issued={here.shown.issued} />
      {rights.isSelf && !shown.person && !rights.isPrevious && !rights.may('ROTATE') && !shown.rotation && (
        <p class="help">To change your key, or to get a new secret, ask an administrator of keys.</p>
      )}
      {asides.entries && <Timeline here={here} entries={asides.entries} />}
    </>
  );
}

/** What a key is called, how it stands, and what can be done to it. */
function KeyHead({ here }: { here: KeyVisit }) {
  const { shown, rights, base, visit } = here;
  return (
    <>
      <div class="head">
        <h1>
          {shown.name} <Status is={shown.status} />
        </h1>
        <div class="actions">
          {rights.may('UPDATE') && <LinkButton to={`${base}/edit`}>Edit</LinkButton>}
          {rights.may(shown.rotation ? 'FINISH_ROTATION' : 'ROTATE') && (
            <LinkButton to={`${base}/rotation`}>{shown.rotation ? 'Rotation' : 'Rotate'}</LinkButton>
          )}
          <Switch here={here} />
          {visit.mayCreate && <LinkButton to={`${visit.root}keys/new?from=${shown.id}`}>Create one like it</LinkButton>}
          {rights.may('CONTAIN') && (
            <a class="button danger" href={`${base}/contain`}>
              Contain
            </a>
          )}
          {rights.may('DELETE') && (
            <a class="button danger" href={`${base}/delete`}>
              Delete
            </a>
          )}
        </div>
      </div>
      {shown.disabledAt !== null && rights.may('UPDATE') && !rights.may('ENABLE') && (
        <p class="help">You cannot enable it: {rights.whyNot('ENABLE')}</p>
      )}
      {shown.description !== null && <p class="description">{printable(shown.description, MAX_LINE_LENGTH)}</p>}
    </>
  );
}

function Switch({ here: { shown, rights, base } }: { here: KeyVisit }) {
  if (shown.disabledAt !== null)
    return rights.may('ENABLE') ? (
      <form method="post" action={`${base}/enable`}>
        <button>Enable</button>
      </form>
    ) : null;
  if (!rights.may('DISABLE')) return null;
  // It is asked about where they cannot enable it again.
  if (rights.endsSession || !rights.may('ENABLE')) return <LinkButton to={`${base}/disable`}>Disable</LinkButton>;
  return (
    <form method="post" action={`${base}/disable`}>
      <button>Disable</button>
    </form>
  );
}

/** The key that somebody has signed in with. */
const answerMyKey: VisitHandler = async (visit) =>
  visit.may('API_KEY:READ_OWN') ? visit.seeOther(`keys/${visit.principal.apiKey.id}`) : answerOverview(visit);

export function addKeyPage(pages: Pages): void {
  pages.get('me', answerMyKey);
  pages.get('keys/:id', answerOverview);
  addSwitching(pages);
  addNarrowing(pages);
  addEditing(pages);
  addRotation(pages);
  addDeletion(pages);
  addContainment(pages);
}
