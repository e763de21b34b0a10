import type { VisitHandler } from '../../page-routes.ts';
import { Done, Warning } from '../../parts/notice.tsx';
import type { AuditedEntry } from '../../parts/audit-entries.tsx';
import { AccessSection, askCatalog } from './access-section.tsx';
import type { KnownCatalog } from './access-cells.ts';
import { askMay, type AccessAnswer } from './access-question.tsx';
import { IssuedSection } from './contain.tsx';
import { KeyFacts } from './key-facts.tsx';
import { KeyHead } from './key-head.tsx';
import { ChildKeysSection } from './child-keys.tsx';
import { RotationNotice } from './rotation-state.tsx';
import { askTimeline, Timeline } from './timeline.tsx';
import { UnusedSection } from './unused-section.tsx';
import { askUsage, type PlottedUsage, UsageSection } from './usage-section.tsx';
import { type KeyVisit, withKey } from './with-key.tsx';

/** What the page says after a form was sent, by the field `done` of its address. */
const DONE = {
  activated: 'The grace period of the previous secret has begun.',
  disabled: 'The key is disabled: it is refused from now on, and so are its child keys.',
  enabled: 'The key is enabled.',
  finished: 'The rotation is finished: only the new secret works.',
  narrowed: 'The key may now do what it has used, and nothing else.',
  'rolled-back': 'The rotation is rolled back: only the previous secret works.',
  saved: 'Saved.',
} as const;

const CREATOR = 'query Creator($id: ID!) { apiKey(id: $id) { name } }';

/** All that the page shows beside the key itself. */
interface OverviewParts {
  creatorName: string | null;
  catalog: KnownCatalog | undefined;
  asked: AccessAnswer | undefined;
  usage: PlottedUsage;
  entries: AuditedEntry[] | undefined;
}

/** The page of one key. */
export const answerOverview: VisitHandler = withKey(async (here) => {
  const { visit } = here;
  const [creatorName, catalog, asked, usage, entries] = await Promise.all([
    askCreatorName(here),
    askCatalog(here),
    askMay(here),
    askUsage(visit),
    askTimeline(visit),
  ]);
  const status = asked?.problem === undefined ? 200 : 400;
  const asides = { creatorName, catalog, asked, usage, entries };
  return visit.page(here.shown.name, <Overview here={here} asides={asides} />, status);
});

async function askCreatorName({ visit, shown: { createdBy } }: KeyVisit): Promise<string | null> {
  if (createdBy === null) return null;
  const { apiKey } = await visit.ask<{ apiKey: { name: string } | null }>(CREATOR, { id: createdBy });
  return apiKey?.name ?? null;
}

function Overview({ here, asides }: { here: KeyVisit; asides: OverviewParts }) {
  const { visit, rights } = here;
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
      <KeyFacts here={here} creatorName={asides.creatorName} />
      <AccessSection here={here} catalog={asides.catalog} asked={asides.asked} />
      <UnusedSection here={here} />
      <UsageSection here={here} usage={asides.usage} />
      <ChildKeysSection here={here} />
      <IssuedSection visit={visit} issued={here.shown.issued} />
      {asides.entries && <Timeline here={here} entries={asides.entries} />}
    </>
  );
}
