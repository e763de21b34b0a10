import { MAX_LINE_LENGTH } from '../../../../keys/key/index.ts';
import { printable } from '../../../../keys/basics/index.ts';
import { AUDITED_FIELDS, type AuditedEntry, AuditEntries } from '../../parts/audit-entries.tsx';
import { Card } from '../../parts/layout.tsx';
import { Done, PREVIOUS_SECRET, Status, Warning, LinkButton } from '../../parts/notice.tsx';
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

/** Loads the audit entries of the key in the address, if the person is allowed to see them. @throws OperationFailed */
async function askTimeline(visit: Visit): Promise<AuditedEntry[] | undefined> {
  if (!visit.may('LOGS:READ_ANY')) return undefined;
  const { edges } = await visit.ask<{ edges: { node: AuditedEntry }[] }>(QUERY, { id: idOf(visit) });
  return edges.map(({ node }) => node);
}

/** The audit entries of a key, newest first. */
function Timeline({ here: { visit, shown }, entries }: { here: KeyVisit; entries: readonly AuditedEntry[] }) {
  return (
    <Card title="Timeline" aside={<a href={`${visit.root}audit-log?key=${shown.id}`}>All in the audit log</a>}>
      {entries.length > 0 ? (
        <AuditEntries root={visit.root} now={visit.now} entries={entries} />
      ) : (
        <p class="faint">There are no entries that you can see. Old ones may have been pruned.</p>
      )}
    </Card>
  );
}

/** Messages after a form was sent, by the `done` field of the address. */
const DONE = {
  activated: 'The grace period of the previous secret has started.',
  disabled: 'Key disabled, with its child keys.',
  enabled: 'Key enabled.',
  finished: 'Rotation finished. Only the new secret works.',
  narrowed: 'Unused permissions removed.',
  'rolled-back': 'Rotation rolled back. Only the previous secret works.',
  saved: 'Saved.',
} as const;

const CREATOR = 'query Creator($id: ID!) { apiKey(id: $id) { name } }';

const answerOverview: VisitHandler = withKey(async (here) => {
  const { visit, rights, shown } = here;
  const [creatorName, catalog, asked, usage, children, entries] = await Promise.all([
    askCreatorName(here),
    askCatalog(here),
    askMay(here),
    askUsage(visit),
    askChildren(here),
    askTimeline(visit),
  ]);
  const done = Object.entries(DONE).find(([word]) => word === visit.query('done'))?.[1];
  return visit.page(
    shown.name,
    <>
      {done !== undefined && <Done>{done}</Done>}
      {rights.isPrevious && <Warning>{PREVIOUS_SECRET}</Warning>}
      <KeyHead here={here} />
      <RotationNotice here={here} />
      <section class="card summary" aria-label="Summary">
        <AccessSummary of={shown} />
        <KeyFacts here={here} creatorName={creatorName} />
      </section>
      <UsageSection here={here} usage={usage} />
      <TreeSection here={here} children={children} />
      <AccessSection here={here} catalog={catalog} asked={asked} />
      <IssuedSection visit={visit} issued={shown.issued} />
      {rights.isSelf && !shown.person && !rights.isPrevious && !rights.may('ROTATE') && !shown.rotation && (
        <p class="help">To change your key or get a new secret, ask an administrator.</p>
      )}
      {entries && <Timeline here={here} entries={entries} />}
    </>,
    asked?.problem === undefined ? 200 : 400,
  );
});

async function askCreatorName({ visit, shown: { createdBy } }: KeyVisit): Promise<string | null> {
  if (createdBy === null || !visit.may('API_KEY:READ_OWN')) return null;
  return (await visit.ask<{ name: string } | null>(CREATOR, { id: createdBy }))?.name ?? null;
}

/** The name and status of a key, and the actions on it. */
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
          {visit.mayCreate && <LinkButton to={`${visit.root}keys/new?from=${shown.id}`}>Duplicate</LinkButton>}
          {rights.may('CONTAIN') && (
            <LinkButton kind="danger" to={`${base}/contain`}>
              Contain
            </LinkButton>
          )}
          {rights.may('DELETE') && (
            <LinkButton kind="danger" to={`${base}/delete`}>
              Delete
            </LinkButton>
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
  // Ask first if they could not enable it again.
  if (rights.endsSession || !rights.may('ENABLE')) return <LinkButton to={`${base}/disable`}>Disable</LinkButton>;
  return (
    <form method="post" action={`${base}/disable`}>
      <button>Disable</button>
    </form>
  );
}

/** Shows the key of the signed-in person. */
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
