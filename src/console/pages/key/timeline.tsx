import { AUDITED_FIELDS, type AuditedEntry, AuditEntries } from '../../parts/audit-entries.tsx';
import type { Visit } from '../../visit.tsx';
import type { KeyVisit } from './with-key.tsx';

const QUERY = `query Timeline($id: String!) {
  auditLog(first: 20, apiKey: $id) { edges { node { ${AUDITED_FIELDS} } } }
}`;

/** What was done to the key that the address names, if the person may know. @throws OperationFailed */
export async function askTimeline(visit: Visit): Promise<AuditedEntry[] | undefined> {
  if (!visit.may('LOGS:READ_ANY')) return undefined;
  const { auditLog } = await visit.ask<{ auditLog: { edges: { node: AuditedEntry }[] } }>(QUERY, {
    id: visit.param('id'),
  });
  return auditLog.edges.map(({ node }) => node);
}

/** What was done to a key, the newest first. */
export function Timeline({ here: { visit, shown }, entries }: { here: KeyVisit; entries: readonly AuditedEntry[] }) {
  return (
    <section aria-labelledby="timeline">
      <div class="head">
        <h2 id="timeline">Timeline</h2>
        <a href={`${visit.root}audit-log?key=${shown.id}`}>All in the audit log</a>
      </div>
      {entries.length > 0 ? (
        <AuditEntries root={visit.root} now={visit.now} entries={entries} ofOneKey />
      ) : (
        <p class="faint">The log has nothing of this key: its entries may have been pruned.</p>
      )}
    </section>
  );
}
